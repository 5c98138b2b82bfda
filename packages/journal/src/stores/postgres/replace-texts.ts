import type { TextReplacement } from "../../store.js";
import { packNumbers, packTexts, text, texts } from "./columns.js";
import { lookupIn } from "./lookup.js";
import type { Schema } from "./schema.js";
import type { Statement, Value } from "./session.js";

/**
 * Puts other texts in the place of those of one resource that are still there, and answers how many. The record is locked first, as in
 * a commit: whoever has it is alone with its parts and entries. Where the statement had to wait for a commit, it looks at each row as
 * that one left it, and passes over what has another text by now.
 *
 * new_parts, new_entries: materialized with the number of the resource, so that each row is looked up by all of its key (J10): see
 * `lookup`.
 */
export function replaceTextsStatement({ resource, entry, part }: Schema): Statement {
  return {
    name: "osbert replace texts",
    text: `
      with held as materialized (select id, key from ${resource} where key = $2 for no key update),
      states as (
        update ${resource} as r set state = ${text("c.new")}
        from unnest($11::bigint[], ${texts(3)}, ${texts(4)}) as c(seq, old, new)
        where r.key = (select key from held) and r.seq = c.seq and r.state = ${text("c.old")}
        returning 1
      ),
      new_parts as materialized (
        select held.id as resource_id, ${text("c.id")} as id, ${text("c.old")} as old, ${text("c.new")} as new
        from unnest(${texts(5)}, ${texts(6)}, ${texts(7)}) as c(id, old, new), held
      ),
      parts as (
        update ${part} as p set body = n.new from new_parts as n
        where ${lookupIn("p.resource_id", "n.resource_id", "p.id", "n.id")} and p.body = n.old
        returning 1
      ),
      new_entries as materialized (
        select held.id as resource_id, c.seq, ${text("c.old")} as old, ${text("c.new")} as new
        from unnest($8::bigint[], ${texts(9)}, ${texts(10)}) as c(seq, old, new), held
      ),
      entries as (
        update ${entry} as e set body = n.new from new_entries as n
        where ${lookupIn("e.resource_id", "n.resource_id", "e.seq", "n.seq")} and e.body = n.old
        returning 1
      )
      select (select count(*) from states) + (select count(*) from parts) + (select count(*) from entries)`,
  };
}

/** No two of one place: a statement writes a row once. */
export function replaceTextsValues(key: string, replacements: readonly TextReplacement[]): Value[] {
  const states = replacements.flatMap(({ place, from, to }) =>
    place.kind === "state" ? [{ seq: place.seq, from, to }] : [],
  );
  const parts = replacements.flatMap(({ place, from, to }) =>
    place.kind === "part" ? [{ id: place.id, from, to }] : [],
  );
  const entries = replacements.flatMap(({ place, from, to }) =>
    place.kind === "entry" ? [{ seq: place.seq, from, to }] : [],
  );
  const { separator, packed } = packTexts([
    states.map(({ from }) => from),
    states.map(({ to }) => to),
    parts.map(({ id }) => id),
    parts.map(({ from }) => from),
    parts.map(({ to }) => to),
    entries.map(({ from }) => from),
    entries.map(({ to }) => to),
  ]);
  const [oldStates = "", newStates = "", ids = "", oldParts = "", newParts = "", oldEntries = "", newEntries = ""] =
    packed;
  const seqs = packNumbers(entries.map(({ seq }) => seq));
  const at = packNumbers(states.map(({ seq }) => seq));
  return [separator, key, oldStates, newStates, ids, oldParts, newParts, seqs, oldEntries, newEntries, at];
}

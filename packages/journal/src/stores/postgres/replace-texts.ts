import type { TextReplacement } from "../../store.js";
import { packNumbers, packTexts, text, texts } from "./columns.js";
import type { Schema } from "./schema.js";
import type { Statement, Value } from "./session.js";

/**
 * Puts other texts in the place of those of one resource that are still there, and answers how many. The record is locked first, as in
 * a commit: whoever has it is alone with its parts and entries. Where the statement had to wait for a commit, it looks at each row as
 * that one left it, and passes over what has another text by now.
 *
 * Rows are found one by one (lateral, with a limit) and then written where they lie: a join would let the planner walk along all
 * entries and parts of the resource (J10).
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
        select p.ctid, ${text("c.old")} as old, ${text("c.new")} as new
        from unnest(${texts(5)}, ${texts(6)}, ${texts(7)}) as c(id, old, new)
        cross join lateral (
          select ctid from ${part} where resource_id = (select id from held) and id = ${text("c.id")} limit 1
        ) as p
      ),
      parts as (
        update ${part} as p set body = c.new from new_parts as c where p.ctid = c.ctid and p.body = c.old returning 1
      ),
      new_entries as materialized (
        select e.ctid, ${text("c.old")} as old, ${text("c.new")} as new
        from unnest($8::bigint[], ${texts(9)}, ${texts(10)}) as c(seq, old, new)
        cross join lateral (
          select ctid from ${entry} where resource_id = (select id from held) and seq = c.seq limit 1
        ) as e
      ),
      entries as (
        update ${entry} as e set body = c.new from new_entries as c where e.ctid = c.ctid and e.body = c.old returning 1
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

import type { Change, CommitOutcome, Label, StoredPart } from "../../store.js";
import { clock } from "./clock.js";
import { optional, packNumbers, packOptional, packTexts, text, texts } from "./columns.js";
import { lookup, lookupIn, lookupRow } from "./lookup.js";
import { numberAt } from "./rows.js";
import type { Schema } from "./schema.js";
import type { Row, Statement, Value } from "./session.js";
import { wakePayload } from "./wake.js";

/**
 * Changes of different resources as one statement, and so as one transaction and one round trip. Each is carried out as
 * a whole or not at all, whatever becomes of the others.
 *
 * Two statements, as most batches write records and entries alone: leaving the rest out saves the server a tenth of its
 * time for a small batch.
 */
export interface CommitStatements {
  readonly lean: Statement;
  readonly full: Statement;
}

export function commitStatements(schema: Schema): CommitStatements {
  return {
    lean: { name: "osbert commit", text: statement(schema, "") },
    full: { name: "osbert commit all", text: statement(schema, besides(schema)) },
  };
}

/** Every process locks rows in one order, or two of them could each wait for what the other has. Any order does. */
export function inLockOrder<Item extends { readonly key: string }>(items: readonly Item[]): readonly Item[] {
  return items.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

/** `sorted`: changes of different resources in lock order. `now`: a test's time. */
export function commitQuery(
  statements: CommitStatements,
  sorted: readonly Change[],
  now: number | null,
): { readonly statement: Statement; readonly values: Value[] } {
  const entries = sorted.flatMap((change, index) =>
    change.entries.map((entry, nth) => ({ ord: index + 1, seq: seqOf(change) + 1 + nth, token: change.token, entry })),
  );
  const lean = sorted.every(writesNothingBesides);
  const { packed, separator } = packTexts([
    sorted.map(({ key }) => key),
    sorted.map(({ lane }) => lane),
    sorted.map(({ lease }) => packOptional(lease === "keep" ? null : (lease?.owner ?? null))),
    sorted.map(({ state }) => state),
    entries.map(({ entry }) => entry.kind),
    entries.map(({ entry }) => packOptional(entry.operation)),
    entries.map(({ token }) => token),
    entries.map(({ entry }) => entry.body),
    ...(lean ? [] : textsBesides(sorted)),
  ]);
  const [keys = "", lanes = "", owners = "", states = "", kinds = "", operations = "", tokens = "", bodies = ""] =
    packed;
  const values = [
    separator,
    now,
    wakePayload(
      sorted.some(({ wake }) => wake),
      sorted.some(({ followed }) => followed === true),
    ),
    keys,
    packNumbers(sorted.map(({ expected }) => expected?.seq ?? null)),
    packNumbers(sorted.map(({ expected }) => expected?.epoch ?? null)),
    packNumbers(sorted.map((change) => seqOf(change) + change.entries.length)),
    packNumbers(sorted.map(({ epoch }) => epoch)),
    packNumbers(sorted.map(({ dueAt }) => (dueAt === "keep" ? null : dueAt))),
    packNumbers(sorted.map(({ lease }) => (lease === "keep" ? null : (lease?.until ?? null)))),
    packNumbers(
      sorted.map(({ dueAt, lease }) => (dueAt === "keep" ? keepDue : 0) + (lease === "keep" ? keepLease : 0)),
    ),
    lanes,
    owners,
    states,
    packNumbers(entries.map(({ ord }) => ord)),
    packNumbers(entries.map(({ seq }) => seq)),
    kinds,
    operations,
    tokens,
    bodies,
  ];
  return lean
    ? { statement: statements.lean, values }
    : { statement: statements.full, values: [...values, ...packed.slice(8), ...numbersBesides(sorted)] };
}

/** What became of the changes that `commitQuery` was given, in their order. */
export function commitOutcomes(sorted: readonly Change[], [row]: readonly Row[]): readonly CommitOutcome[] {
  const committed: CommitOutcome = { kind: "committed", at: numberAt(row, 0) };
  const numbers = row?.[1] ?? "";
  if (numbers === "all") return sorted.map(() => committed);
  const ords = new Set(numbers.split(","));
  return sorted.map((_, index) => (ords.has(String(index + 1)) ? committed : { kind: "conflict" }));
}

/** The sequence of numbers goes on in steps that are larger than this. */
export const maxChanges = 128;

const keepDue = 1;
const keepLease = 2;

/**
 * base: the numbers base + 1 to base + `maxChanges` are this batch's own, so that a new record's number tells which
 * change it came from.
 *
 * changed: the update waits for a row that another transaction has locked, and then looks at the row as that one left
 * it: with another seq or epoch it is passed over. All else happens only for what `changed` and `created` answer, whose
 * rows are locked by now.
 *
 * done: arrays, because finding a change's number in one is cheaper than any join.
 */
function statement({ resource, resourceId, entry, channel }: Schema, besides: string): string {
  return `
    with clock as materialized (${clock(2)}),
    base as materialized (select nextval('${resourceId}') as id),
    change as materialized (
      select
        c.ord::integer as ord, ${text("c.key")} as key, c.expected_seq, c.expected_epoch, c.seq, c.epoch, c.due_at, c.lease_until,
        c.keep & ${keepDue} > 0 as keep_due, c.keep & ${keepLease} > 0 as keep_lease,
        ${text("c.lane")} as lane, ${optional("c.lease_owner")} as lease_owner, ${text("c.state")} as state
      from unnest(
        ${texts(4)}, $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::integer[],
        ${texts(12)}, ${texts(13)}, ${texts(14)}
      ) with ordinality
        as c(key, expected_seq, expected_epoch, seq, epoch, due_at, lease_until, keep, lane, lease_owner, state, ord)
    ),
    changed as (
      update ${resource} as r
      set
        seq = c.seq, epoch = c.epoch, lane = c.lane, state = c.state,
        due_at = case
          when c.keep_due then r.due_at
          when c.due_at = c.lease_until and c.lease_owner = r.lease_owner and c.epoch = r.epoch then greatest(c.due_at, r.lease_until)
          else c.due_at
        end,
        lease_owner = case when c.keep_lease then r.lease_owner else c.lease_owner end,
        lease_until = case
          when c.keep_lease then r.lease_until
          when c.lease_owner = r.lease_owner and c.epoch = r.epoch then greatest(c.lease_until, r.lease_until)
          else c.lease_until
        end
      from change as c
      where
        c.expected_seq is not null
        and ${lookup("r.key", "c.key")} and r.seq = c.expected_seq and r.epoch = c.expected_epoch
      returning c.ord, r.id
    ),
    created as (
      insert into ${resource} (id, key, seq, epoch, due_at, lease_until, lane, lease_owner, state)
      select base.id + c.ord, c.key, c.seq, c.epoch, c.due_at, c.lease_until, c.lane, c.lease_owner, c.state
      from change as c, base
      where c.expected_seq is null
      on conflict (key) do nothing
      returning id
    ),
    done as materialized (
      select array_agg(ord) as ords, array_agg(id) as ids
      from (
        select ord, id from changed
        union all
        select (created.id - base.id)::integer, created.id from created, base
      ) as each
    ),
    entries as (
      insert into ${entry} (resource_id, seq, at, kind, operation, token, body)
      select
        done.ids[array_position(done.ords, e.ord)], e.seq, clock.at,
        ${text("e.kind")}, ${optional("e.operation")}, ${text("e.token")}, ${text("e.body")}
      from
        unnest($15::integer[], $16::bigint[], ${texts(17)}, ${texts(18)}, ${texts(19)}, ${texts(20)})
          as e(ord, seq, kind, operation, token, body),
        done, clock
      where e.ord = any (done.ords)
    )
    ${besides}
    select
      clock.at,
      case when cardinality(done.ords) = (select count(*) from change) then 'all' else array_to_string(done.ords, ',') end,
      case when $3::text is not null and done.ords is not null then pg_notify('${channel}', $3::text) end
    from clock, done`;
}

/**
 * gone_parts, gone_labels, gone_entries: what is to be deleted, with the number of its resource, or none if its change was not
 * carried out. Materialized, so that the deletes look each of them up by resource from one relation: see `lookup`.
 */
function besides({ entry, part, label }: Schema): string {
  const id = "done.ids[array_position(done.ords, c.ord)]";
  return `,
    parts_put as (
      insert into ${part} (resource_id, id, body)
      select ${id}, ${text("c.id")}, ${text("c.body")}
      from unnest($29::integer[], ${texts(21)}, ${texts(22)}) as c(ord, id, body), done
      where c.ord = any (done.ords)
      on conflict (resource_id, id) do update set body = excluded.body
    ),
    gone_parts as materialized (
      select ${id} as resource_id, ${text("c.id")} as id from unnest($30::integer[], ${texts(23)}) as c(ord, id), done
    ),
    parts_deleted as (
      delete from ${part} as p using gone_parts as g where ${lookupIn("p.resource_id", "g.resource_id", "p.id", "g.id")}
    ),
    labels_added as (
      insert into ${label} (resource_id, name, value, key)
      select ${id}, ${text("c.name")}, ${text("c.value")}, ${text("c.key")}
      from unnest($31::integer[], ${texts(24)}, ${texts(25)}, ${texts(26)}) as c(ord, name, value, key), done
      where c.ord = any (done.ords)
      on conflict do nothing
    ),
    gone_labels as materialized (
      select ${id} as resource_id, ${text("c.name")} as name, ${text("c.value")} as value
      from unnest($32::integer[], ${texts(27)}, ${texts(28)}) as c(ord, name, value), done
    ),
    labels_removed as (
      delete from ${label} as l using gone_labels as g
      where ${lookupRow(["l.resource_id", "l.name", "l.value"], ["g.resource_id", "g.name", "g.value"])}
    ),
    gone_entries as materialized (
      select ${id} as resource_id, c.seq from unnest($33::integer[], $34::bigint[]) as c(ord, seq), done
    ),
    entries_deleted as (
      delete from ${entry} as e using gone_entries as g where ${lookupIn("e.resource_id", "g.resource_id", "e.seq", "g.seq")}
    )`;
}

function writesNothingBesides(change: Change): boolean {
  return (
    change.putParts.length === 0 &&
    change.deleteParts.length === 0 &&
    change.addLabels.length === 0 &&
    change.removeLabels.length === 0 &&
    change.deleteEntries.length === 0
  );
}

function textsBesides(changes: readonly Change[]): string[][] {
  const put = changes.flatMap(lastPuts);
  const added = changes.flatMap(({ addLabels }) => addLabels);
  const removed = changes.flatMap(removedLabels);
  return [
    put.map(({ id }) => id),
    put.map(({ body }) => body),
    changes.flatMap(({ deleteParts }) => deleteParts),
    added.map(({ name }) => name),
    added.map(({ value }) => value),
    changes.flatMap(({ key, addLabels }) => addLabels.map(() => key)),
    removed.map(({ name }) => name),
    removed.map(({ value }) => value),
  ];
}

function numbersBesides(changes: readonly Change[]): string[] {
  const ordsOf = (many: (change: Change) => readonly unknown[]) =>
    packNumbers(changes.flatMap((change, index) => many(change).map(() => index + 1)));
  return [
    ordsOf(lastPuts),
    ordsOf(({ deleteParts }) => deleteParts),
    ordsOf(({ addLabels }) => addLabels),
    ordsOf(removedLabels),
    ordsOf(({ deleteEntries }) => deleteEntries),
    packNumbers(changes.flatMap(({ deleteEntries }) => deleteEntries)),
  ];
}

/**
 * Not those that are added as well: all parts of a statement see the rows as they were before it, and have no order.
 */
function removedLabels({ addLabels, removeLabels }: Change): readonly Label[] {
  return removeLabels.filter(
    ({ name, value }) => !addLabels.some((added) => added.name === name && added.value === value),
  );
}

/** A statement must not write a row twice. */
function lastPuts({ putParts }: Change): readonly StoredPart[] {
  return [...new Map(putParts.map((part) => [part.id, part])).values()];
}

function seqOf({ expected }: Change): number {
  return expected?.seq ?? 0;
}

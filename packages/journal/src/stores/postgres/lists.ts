import { beforeAllWork, type EntryRange, type PartRange, type Query, type WorkRange } from "../../store.js";
import { entryColumns, recordColumns } from "./rows.js";
import type { Schema } from "./schema.js";
import type { Statement, Value } from "./session.js";

/** Lists that go on from where the last page ended. Each reads from an index in its order, and stops at the limit. */
export interface ListStatements {
  readonly entriesAfter: Statement;
  readonly entriesBefore: Statement;
  readonly settled: Statement;
  readonly parts: Statement;
  readonly records: Statement;
  readonly labelled: Statement;
  readonly work: Statement;
  readonly workOfLane: Statement;
}

export function listStatements({ resource, entry, part, label }: Schema): ListStatements {
  // Looked up on its own: in a join PostgreSQL would read all rows of the resource and sort them.
  const id = `(select id from ${resource} where key = $1)`;
  return {
    entriesAfter: {
      name: "osbert entries after",
      text: `select ${entryColumns("e")} from ${entry} as e where e.resource_id = ${id} and e.seq > $2 order by e.seq limit $3`,
    },
    entriesBefore: {
      name: "osbert entries before",
      text: `select ${entryColumns("e")} from ${entry} as e where e.resource_id = ${id} and e.seq < $2 order by e.seq desc limit $3`,
    },
    settled: {
      name: "osbert settled",
      text: `select ${entryColumns("e")} from ${entry} as e where e.resource_id = ${id} and e.operation = $2 and e.kind = 'settled'`,
    },
    parts: {
      name: "osbert parts",
      text: `
        select p.id, p.body from ${part} as p
        where p.resource_id = ${id} and p.id > $2 and p.id >= $3 and p.id < $4 order by p.id limit $5`,
    },
    records: {
      name: "osbert find",
      text: `select ${recordColumns("r")} from ${resource} as r where r.key > $1 and r.key >= $2 and r.key < $3 order by r.key limit $4`,
    },
    labelled: {
      name: "osbert find labelled",
      text: `
        select ${recordColumns("r")}
        from (
          select key from ${label}
          where name = $5 and value = $6 and key > $1 and key >= $2 and key < $3 order by key limit $4
        ) as l
        cross join lateral (select * from ${resource} where key = l.key limit 1) as r
        order by l.key`,
    },
    // Along the index of claims, which has no keys: those that are due in the millisecond of the last one are read too, and put in
    // order. Asked for that order as a whole, PostgreSQL would sort all that has work.
    work: {
      name: "osbert find work",
      text: inOrderOfKeys(`
        select * from ${resource} as r
        where r.due_at is not null and (r.lane, r.due_at) >= ($1, $2::bigint) and (r.lane, r.due_at, r.key) > ($1, $2::bigint, $3)
        order by r.lane, r.due_at fetch first $4 rows with ties`),
    },
    workOfLane: {
      name: "osbert find work of a lane",
      text: inOrderOfKeys(`
        select * from ${resource} as r
        where r.lane = $1 and r.due_at >= $2::bigint and (r.due_at, r.key) > ($2::bigint, $3)
        order by r.lane, r.due_at fetch first $4 rows with ties`),
    },
  };
}

function inOrderOfKeys(found: string): string {
  return `select ${recordColumns("r")} from (${found}) as r order by r.lane, r.due_at, r.key limit $4`;
}

export function entriesQuery(
  statements: ListStatements,
  key: string,
  range: Exclude<EntryRange, { readonly kind: "numbers" }>,
): { readonly statement: Statement; readonly values: Value[] } {
  switch (range.kind) {
    case "after":
      return { statement: statements.entriesAfter, values: [key, range.after, range.limit] };
    case "before":
      return { statement: statements.entriesBefore, values: [key, range.before, range.limit] };
    case "settled":
      return { statement: statements.settled, values: [key, range.operation] };
  }
}

export function partsValues(key: string, { prefix, after, limit }: PartRange): Value[] {
  return [key, after ?? "", prefix, endOfPrefix(prefix), limit];
}

export function findQuery(
  statements: ListStatements,
  { label, prefix = "", work, after, limit }: Query,
): { readonly statement: Statement; readonly values: Value[] } {
  if (work !== undefined) return workQuery(statements, work, limit);
  const values = [after ?? "", prefix, endOfPrefix(prefix), limit];
  return label === undefined
    ? { statement: statements.records, values }
    : { statement: statements.labelled, values: [...values, label.name, label.value] };
}

function workQuery(
  { work, workOfLane }: ListStatements,
  { lane, after }: WorkRange,
  limit: number,
): { readonly statement: Statement; readonly values: Value[] } {
  const place = after ?? (lane === null ? beforeAllWork : { lane, dueAt: Number.MIN_SAFE_INTEGER, key: "" });
  const values = [lane ?? place.lane, place.dueAt, place.key, limit];
  return { statement: lane === null ? work : workOfLane, values };
}

/**
 * Larger than every name the store keeps: one character more of the largest there is than the longest name has room
 * for.
 */
const endOfAll = "\u{10ffff}".repeat(129);

/**
 * The first text after all that start with the prefix. Bytes of UTF-8 are in the order of code points, so it is the
 * prefix with its last code point raised by one. An index can end its scan there, which it cannot for LIKE with a
 * parameter.
 */
export function endOfPrefix(prefix: string): string {
  const points = Array.from(prefix);
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const next = (last.codePointAt(0) ?? 0) + 1;
    if (next <= 0x10ffff) return points.join("") + String.fromCodePoint(isSurrogate(next) ? 0xe000 : next);
  }
  return endOfAll;
}

/** Halves of pairs are no characters and have no bytes of their own. */
function isSurrogate(point: number): boolean {
  return point >= 0xd800 && point <= 0xdfff;
}

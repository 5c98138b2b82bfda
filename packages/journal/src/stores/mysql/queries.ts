import type {
  EntryRange,
  Expected,
  PartRange,
  Query,
  StoredEntry,
  StoredPart,
  StoredRecord,
  WorkRange,
} from "../../store.js";
import { entryColumns, entryOf, partOf, recordColumns, recordOf, textOf } from "./rows.js";
import type { Sessions } from "./sessions.js";
import { bytes, dueAtSql, int, limitOf, listOf, within } from "./sql.js";
import type { Tables } from "./tables.js";

export async function findEntries(
  sessions: Sessions,
  { resource, entry }: Tables,
  key: string,
  range: EntryRange,
): Promise<readonly StoredEntry[]> {
  if (range.kind === "numbers" && range.seqs.length === 0) return [];
  const sql = `select ${entryColumns("e")}
    from ${resource} r force index (by_key) straight_join ${entry} e force index (${range.kind === "settled" ? "by_operation" : "primary"})
    on e.resource = r.id
    where r.\`key\` = ${bytes(key)} and ${isWithin(range)}`;
  return (await sessions.use((session) => session.rows(sql))).map(entryOf);
}

function isWithin(range: EntryRange): string {
  switch (range.kind) {
    case "numbers":
      return `e.seq in ${listOf(range.seqs, int)} order by e.seq`;
    case "after":
      return `e.seq > ${int(range.after)} order by e.seq limit ${limitOf(range.limit)}`;
    case "before":
      return `e.seq < ${int(range.before)} order by e.seq desc limit ${limitOf(range.limit)}`;
    case "settled":
      // As a text: compared with bytes, the column would not be looked up in its index.
      return `e.operation = _utf8mb4 ${bytes(range.operation)} and e.kind = 'settled' order by e.seq desc limit 1`;
  }
}

export async function findVersions(
  sessions: Sessions,
  { resource }: Tables,
  keys: readonly string[],
): Promise<ReadonlyMap<string, Expected>> {
  const sql = `select r.\`key\`, r.seq, r.epoch from ${resource} r force index (by_key) where r.\`key\` in ${listOf(keys, bytes)}`;
  const rows = await sessions.use((session) => session.rows(sql));
  return new Map(rows.map((row) => [textOf(row.key), { seq: Number(row.seq), epoch: Number(row.epoch) }]));
}

export async function findParts(
  sessions: Sessions,
  { resource, part }: Tables,
  key: string,
  { prefix, after, limit }: PartRange,
): Promise<readonly StoredPart[]> {
  const sql = `select p.id, p.body
    from ${resource} r force index (by_key) straight_join ${part} p force index (primary) on p.resource = r.id
    where r.\`key\` = ${bytes(key)} and ${within("p.id", prefix, after)} order by p.id limit ${limitOf(limit)}`;
  return (await sessions.use((session) => session.rows(sql))).map(partOf);
}

export async function findRecords(
  sessions: Sessions,
  { resource, label }: Tables,
  { label: labelled, prefix = "", work, after, limit }: Query,
): Promise<readonly StoredRecord[]> {
  const sql =
    work !== undefined
      ? `select ${recordColumns("r")} from ${resource} r force index (by_due)
         where ${workWithin(work)} order by r.lane, r.due_at, r.\`key\` limit ${limitOf(limit)}`
      : labelled === undefined
        ? `select ${recordColumns("r")} from ${resource} r force index (by_key)
         where ${within("r.`key`", prefix, after)} order by r.\`key\` limit ${limitOf(limit)}`
        : `select ${recordColumns("r")} from ${label} l force index (by_value) straight_join ${resource} r on r.id = l.resource
         where l.name = ${bytes(labelled.name)} and l.value = ${bytes(labelled.value)}
         and ${within("l.`key`", prefix, after)} order by l.\`key\` limit ${limitOf(limit)}`;
  return (await sessions.use((session) => session.rows(sql))).map(recordOf);
}

/** The server puts all that has work in order, however short the page: it cannot go along an index for the first columns of an order alone. */
function workWithin({ lane, after }: WorkRange): string {
  const due = `r.due_at < ${dueAtSql(null)}`;
  const lanes = lane === null ? "r.lane > x''" : `r.lane = ${bytes(lane)}`;
  if (after === null) return `${lanes} and ${due}`;
  const [at, key] = [int(after.dueAt), bytes(after.key)];
  const behind = `(r.due_at > ${at} or (r.due_at = ${at} and r.\`key\` > ${key}))`;
  if (lane !== null) return `${lanes} and ${due} and ${behind}`;
  const from = bytes(after.lane);
  return `${lanes} and r.lane >= ${from} and ${due} and (r.lane > ${from} or ${behind})`;
}

import {
  type BacklogRequest,
  beforeAllWork,
  type EntryRange,
  type Expected,
  type HeldPage,
  type LaneBacklog,
  type PartRange,
  type Query,
  type StoredBacklog,
  type StoredEntry,
  type StoredPart,
  type StoredRecord,
  type StoredResource,
  type WorkRange,
} from "../../store.js";
import type { Connection } from "./connection.js";
import { entryColumns, entryOf, numberOf, partOf, type Row, recordColumns, recordOf, textOf } from "./rows.js";
import { textRange } from "./text-range.js";

const ofResource = "resource = (select id from resource where key = ?)";

/**
 * Those that take a key are of one moment by themselves. Those that take the number of a resource are used inside
 * `#atOneMoment`: between two moments the writer may remove a resource and give its number to another one.
 */
export const readSql = {
  record: `select ${recordColumns}, id from resource where key = ?`,
  id: "select id from resource where key = ?",
  version: "select seq, epoch from resource where key = ?",
  part: "select body from part where resource = ? and id = ?",
  entry: `select ${entryColumns} from entry where resource = ? and seq = ?`,
  entriesAfter: `select ${entryColumns} from entry where ${ofResource} and seq > ? order by seq limit ?`,
  entriesBefore: `select ${entryColumns} from entry where ${ofResource} and seq < ? order by seq desc limit ?`,
  settled: `select ${entryColumns} from entry indexed by entry_settled where ${ofResource} and kind = 'settled' and operation = ?`,
  parts: `select id, body from part where ${ofResource} and id >= ? order by id limit ?`,
  partsUpTo: `select id, body from part where ${ofResource} and id >= ? and id < ? order by id limit ?`,
  find: `select ${recordColumns} from resource where key >= ? order by key limit ?`,
  findUpTo: `select ${recordColumns} from resource where key >= ? and key < ? order by key limit ?`,
  // Each of these walks along the index of what is due or leased, which it names so that SQLite refuses to do anything else.
  nextLane:
    "select lane from resource indexed by resource_due where due_at is not null and lane > ? order by lane limit 1",
  countDue: counted("resource_due where lane = ? and due_at <= ?"),
  countLater: counted("resource_due where lane = ? and due_at > ?"),
  countLeased: counted("resource_lease where lease_owner > ''"),
  // All that the owner holds are put in order: as many as a process can run.
  heldBy: `select key from resource indexed by resource_lease where lease_owner = ? and key > ? order by key limit ?`,
  earliestDue: `select ${recordColumns} from resource indexed by resource_due
                where lane = ? and due_at is not null order by due_at limit ?`,
  findLabelled: labelled("label.key >= ?"),
  findLabelledUpTo: labelled("label.key >= ? and label.key < ?"),
  // Along the index of claims; only those that are due in one millisecond have to be put in order.
  findWork: `select ${recordColumns} from resource indexed by resource_due
             where due_at is not null and (lane, due_at) >= (?, ?) and (lane, due_at, key) > (?, ?, ?)
             order by lane, due_at, key limit ?`,
  findWorkOfLane: `select ${recordColumns} from resource indexed by resource_due
                   where lane = ? and due_at >= ? and (due_at, key) > (?, ?) order by due_at, key limit ?`,
} as const;

/** Reads on the main thread: a point read takes less than handing it to another thread would. */
export class Reader {
  readonly #database: Connection;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: Connection) {
    this.#database = database;
    this.#statements = prepare(database);
  }

  read(key: string, parts: readonly string[]): StoredResource | undefined {
    return parts.length === 0 ? this.#read(key, parts) : this.#atOneMoment(() => this.#read(key, parts));
  }

  versions(keys: readonly string[]): ReadonlyMap<string, Expected> {
    const found = new Map<string, Expected>();
    for (const key of keys) {
      const row = this.#statements.version.get(key) as Row | undefined;
      if (row !== undefined) found.set(key, { seq: numberOf(row[0]), epoch: numberOf(row[1]) });
    }
    return found;
  }

  entries(key: string, range: EntryRange): readonly StoredEntry[] {
    const { id, entry, entriesAfter, entriesBefore, settled } = this.#statements;
    switch (range.kind) {
      case "numbers":
        return this.#atOneMoment(() => {
          const found = id.get(key) as Row | undefined;
          if (found === undefined) return [];
          const seqs = [...new Set(range.seqs)].sort((a, b) => a - b);
          return seqs.flatMap((seq) => (entry.all(found[0], seq) as Row[]).map(entryOf));
        });
      case "after":
        return (entriesAfter.all(key, range.after, wholeOf(range.limit)) as Row[]).map(entryOf);
      case "before":
        return (entriesBefore.all(key, range.before, wholeOf(range.limit)) as Row[]).map(entryOf);
      case "settled":
        return (settled.all(key, range.operation) as Row[]).map(entryOf);
    }
  }

  parts(key: string, { prefix, after, limit }: PartRange): readonly StoredPart[] {
    const { parts, partsUpTo } = this.#statements;
    const { from, to } = textRange(prefix, after);
    const rows = to === null ? parts.all(key, from, wholeOf(limit)) : partsUpTo.all(key, from, to, wholeOf(limit));
    return (rows as Row[]).map(partOf);
  }

  find({ label, prefix = "", work, after, limit }: Query): readonly StoredRecord[] {
    if (work !== undefined) return this.#findWork(work, limit);
    const { find, findUpTo, findLabelled, findLabelledUpTo } = this.#statements;
    const { from, to } = textRange(prefix, after);
    const bounds = to === null ? [from, wholeOf(limit)] : [from, to, wholeOf(limit)];
    const rows =
      label === undefined
        ? (to === null ? find : findUpTo).all(...bounds)
        : (to === null ? findLabelled : findLabelledUpTo).all(label.name, label.value, ...bounds);
    return (rows as Row[]).map(recordOf);
  }

  backlog({ limit, sample }: BacklogRequest, now: number): StoredBacklog {
    const { nextLane, countDue, countLater, countLeased, earliestDue } = this.#statements;
    const most = wholeOf(limit);
    const lanes: LaneBacklog[] = [];
    for (let last = ""; ; ) {
      const found = nextLane.get(last) as Row | undefined;
      if (found === undefined) break;
      const lane = textOf(found[0]);
      const due = countOf(countDue.get(lane, now, most));
      const later = countOf(countLater.get(lane, now, most));
      lanes.push({ lane, due, later, sample: (earliestDue.all(lane, wholeOf(sample)) as Row[]).map(recordOf) });
      last = lane;
    }
    return { now, lanes, leased: countOf(countLeased.get(most)) };
  }

  heldBy(owner: string, { after, limit }: HeldPage): readonly string[] {
    return (this.#statements.heldBy.all(owner, after ?? "", wholeOf(limit)) as Row[]).map(([key]) => textOf(key));
  }

  #findWork({ lane, after }: WorkRange, limit: number): readonly StoredRecord[] {
    const { findWork, findWorkOfLane } = this.#statements;
    const place = after ?? (lane === null ? beforeAllWork : { lane, dueAt: Number.MIN_SAFE_INTEGER, key: "" });
    const { lane: from, dueAt, key } = place;
    const rows =
      lane === null
        ? findWork.all(from, dueAt, from, dueAt, key, wholeOf(limit))
        : findWorkOfLane.all(lane, dueAt, dueAt, key, wholeOf(limit));
    return (rows as Row[]).map(recordOf);
  }

  close(): void {
    this.#database.close();
  }

  #read(key: string, parts: readonly string[]): StoredResource | undefined {
    const row = this.#statements.record.get(key) as Row | undefined;
    if (row === undefined) return undefined;
    const number = row.at(-1);
    const bodies = new Map<string, string>();
    for (const id of parts) {
      const found = this.#statements.part.get(number, id) as Row | undefined;
      if (found !== undefined) bodies.set(id, textOf(found[0]));
    }
    return { record: recordOf(row), parts: bodies };
  }

  /** Nothing in it may wait: the moment would hold up checkpoints for as long. */
  #atOneMoment<T>(read: () => T): T {
    const { begin, end } = this.#statements;
    begin.run();
    try {
      return read();
    } finally {
      // SQLite may have ended it by itself, as it does when the disk fails.
      if (this.#database.inTransaction) end.run();
    }
  }
}

/** Counts no further than the limit. */
function counted(rows: string): string {
  return `select count(*) from (select 1 from resource indexed by ${rows} limit ?)`;
}

function countOf(row: unknown): number {
  return Number((row as Row)[0]);
}

function labelled(bounds: string): string {
  const columns = recordColumns
    .split(", ")
    .map((column) => `resource.${column}`)
    .join(", ");
  // A cross join is not reordered: first the labels in the order of the keys, then the record of each.
  return `select ${columns} from label cross join resource on resource.id = label.resource
          where label.name = ? and label.value = ? and ${bounds} order by label.key limit ?`;
}

/** SQLite takes no infinity, and would take a negative limit for none. */
function wholeOf(limit: number): number {
  return Math.max(0, Math.min(limit, Number.MAX_SAFE_INTEGER));
}

function prepare(database: Connection) {
  return {
    record: database.prepare(readSql.record).raw(),
    id: database.prepare(readSql.id).raw(),
    version: database.prepare(readSql.version).raw(),
    part: database.prepare(readSql.part).raw(),
    entry: database.prepare(readSql.entry).raw(),
    entriesAfter: database.prepare(readSql.entriesAfter).raw(),
    entriesBefore: database.prepare(readSql.entriesBefore).raw(),
    settled: database.prepare(readSql.settled).raw(),
    parts: database.prepare(readSql.parts).raw(),
    partsUpTo: database.prepare(readSql.partsUpTo).raw(),
    find: database.prepare(readSql.find).raw(),
    findUpTo: database.prepare(readSql.findUpTo).raw(),
    nextLane: database.prepare(readSql.nextLane).raw(),
    countDue: database.prepare(readSql.countDue).raw(),
    countLater: database.prepare(readSql.countLater).raw(),
    countLeased: database.prepare(readSql.countLeased).raw(),
    heldBy: database.prepare(readSql.heldBy).raw(),
    earliestDue: database.prepare(readSql.earliestDue).raw(),
    findLabelled: database.prepare(readSql.findLabelled).raw(),
    findLabelledUpTo: database.prepare(readSql.findLabelledUpTo).raw(),
    findWork: database.prepare(readSql.findWork).raw(),
    findWorkOfLane: database.prepare(readSql.findWorkOfLane).raw(),
    begin: database.prepare("begin"),
    end: database.prepare("commit"),
  };
}

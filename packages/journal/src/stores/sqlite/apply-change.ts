import type { Label } from "../../store.js";
import { leaseAfter } from "../lease-after.js";
import type { WrittenChange } from "./change-cells.js";
import type { Connection } from "./connection.js";

/**
 * Carries out changes inside the writer's transaction. Whether a change may be made is decided before anything of it
 * is written, so that one that is refused leaves nothing behind for the others that share the transaction.
 */
export class ChangeWriter {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: Connection) {
    this.#statements = prepare(database);
  }

  /** Whether it was made; otherwise the record is not at what the change expected, and nothing was written. */
  apply(change: WrittenChange, now: number): boolean {
    const id = change.expected === null ? this.#insert(change) : this.#update(change, change.expected);
    if (id === undefined) return false;
    const { deleteEntry, addEntry, deletePart, putPart } = this.#statements;
    for (const seq of change.deleteEntries) deleteEntry.run(id, seq);
    let seq = change.expected?.seq ?? 0;
    for (const { kind, operation, body } of change.entries) {
      seq++;
      addEntry.run(id, seq, now, kind, operation, change.token, body);
    }
    for (const part of change.deleteParts) deletePart.run(id, part);
    for (const part of change.putParts) putPart.run(id, part.id, part.body);
    this.#label(id, change.key, change.removeLabels, change.addLabels);
    return true;
  }

  #insert(change: WrittenChange): number | undefined {
    const { key, epoch, lane, state } = change;
    const lease = change.lease === "keep" ? null : change.lease;
    const dueAt = change.dueAt === "keep" ? null : change.dueAt;
    const { addRecord } = this.#statements;
    const added = addRecord.run(
      key,
      change.entries.length,
      epoch,
      lane,
      dueAt,
      lease?.owner ?? null,
      lease?.until ?? null,
      state,
    );
    return added.changes === 0 ? undefined : (added.lastInsertRowid as number);
  }

  /**
   * One statement, and of three the one that names no more than it must: SQLite rewrites an index if a column of it is named, changed or
   * not. Most commits of a runner prolong its lease, which moves the due time and leaves the owner.
   */
  #update(change: WrittenChange, expected: { readonly seq: number; readonly epoch: number }): number | undefined {
    const { findRecord, setState, setDue, setOwner } = this.#statements;
    const found = findRecord.get(change.key) as FoundRecord | undefined;
    if (found === undefined) return undefined;
    const [id, seq, epoch, lane, dueAt, owner, until] = found;
    if (seq !== expected.seq || epoch !== expected.epoch) return undefined;
    const lease = owner === null || until === null ? null : { owner, until };
    const after = leaseAfter(change, { epoch, lease, dueAt });
    const newSeq = seq + change.entries.length;
    const newOwner = after.lease?.owner ?? null;
    const newUntil = after.lease?.until ?? null;
    if (newOwner !== owner)
      setOwner.run(newSeq, change.epoch, change.state, change.lane, after.dueAt, newUntil, newOwner, id);
    else if (after.dueAt !== dueAt || change.lane !== lane || newUntil !== until)
      setDue.run(newSeq, change.epoch, change.state, change.lane, after.dueAt, newUntil, id);
    else setState.run(newSeq, change.epoch, change.state, id);
    return id;
  }

  #label(id: number, key: string, removed: readonly Label[], added: readonly Label[]): void {
    const { removeLabel, addLabel } = this.#statements;
    for (const { name, value } of removed) removeLabel.run(id, name, value);
    for (const { name, value } of added) addLabel.run(id, name, value, key);
  }
}

type FoundRecord = readonly [
  id: number,
  seq: number,
  epoch: number,
  lane: string,
  dueAt: number | null,
  owner: string | null,
  until: number | null,
];

function prepare(database: Connection) {
  return {
    addRecord: database.prepare(
      `insert into resource (key, seq, epoch, lane, due_at, lease_owner, lease_until, state)
       values (?, ?, ?, ?, ?, ?, ?, ?) on conflict (key) do nothing`,
    ),
    findRecord: database
      .prepare("select id, seq, epoch, lane, due_at, lease_owner, lease_until from resource where key = ?")
      .raw(),
    setState: database.prepare("update resource set seq = ?, epoch = ?, state = ? where id = ?"),
    setDue: database.prepare(
      "update resource set seq = ?, epoch = ?, state = ?, lane = ?, due_at = ?, lease_until = ? where id = ?",
    ),
    setOwner: database.prepare(
      "update resource set seq = ?, epoch = ?, state = ?, lane = ?, due_at = ?, lease_until = ?, lease_owner = ? where id = ?",
    ),
    addEntry: database.prepare(
      "insert into entry (resource, seq, at, kind, operation, token, body) values (?, ?, ?, ?, ?, ?, ?)",
    ),
    deleteEntry: database.prepare("delete from entry where resource = ? and seq = ?"),
    putPart: database.prepare(
      "insert into part (resource, id, body) values (?, ?, ?) on conflict (resource, id) do update set body = excluded.body",
    ),
    deletePart: database.prepare("delete from part where resource = ? and id = ?"),
    addLabel: database.prepare(
      "insert into label (resource, name, value, key) values (?, ?, ?, ?) on conflict (resource, name, value) do nothing",
    ),
    removeLabel: database.prepare("delete from label where resource = ? and name = ? and value = ?"),
  };
}

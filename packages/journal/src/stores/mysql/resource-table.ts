import type { Change } from "../../store.js";
import type { Locked, Write } from "./decide-commit.js";
import { dueAtOf, leaseOf, textOf } from "./rows.js";
import { Insertion, selectByKeys, type Values } from "./rows-at-once.js";
import type { Server } from "./server.js";
import type { Row, Session } from "./session.js";
import { never } from "./sql.js";
import type { Tables } from "./tables.js";

const columns = ["id", "`key`", "seq", "epoch", "lane", "due_at", "lease_owner", "lease_until", "state"];

/** How commits lock, insert and update records. Changes and writes come in the order of their keys. */
export class ResourceTable {
  readonly #resource: string;
  readonly #statementBytes: number;
  readonly #inserting: Insertion;
  readonly #updating: Insertion;

  constructor({ resource }: Tables, { statementBytes }: Server) {
    this.#resource = resource;
    this.#statementBytes = statementBytes;
    this.#inserting = new Insertion(resource, columns);
    // The only statement that updates many rows, each to its own values. They are there and locked: nothing is inserted.
    const updates = columns.slice(2).map((column) => `${column} = values(${column})`);
    this.#updating = new Insertion(resource, columns, `on duplicate key update ${updates.join(", ")}`);
  }

  /** The index is forced: a server that takes a small table as a whole would lock, or wait for, rows of others. */
  async lock(session: Session, changes: readonly Change[]): Promise<ReadonlyMap<string, Locked>> {
    const rows = await selectByKeys(
      session,
      `select id, \`key\`, seq, epoch, due_at, lease_owner, lease_until
       from ${this.#resource} force index (by_key) where \`key\` in`,
      changes.map(({ key }) => Buffer.from(key)),
      "order by `key` for update",
    );
    return new Map(rows.map((row) => [textOf(row.key), lockedOf(row)]));
  }

  /** Throws the server's duplicate error if one is there already. */
  async insert(session: Session, writes: readonly Write[]): Promise<void> {
    await this.#inserting.run(session, writes.map(valuesOf), this.#statementBytes);
  }

  async update(session: Session, writes: readonly Write[]): Promise<void> {
    await this.#updating.run(session, writes.map(valuesOf), this.#statementBytes);
  }
}

function lockedOf(row: Row): Locked {
  return {
    id: Number(row.id),
    seq: Number(row.seq),
    epoch: Number(row.epoch),
    dueAt: dueAtOf(row.due_at),
    lease: leaseOf(row),
  };
}

function valuesOf({ id, change, seq, dueAt, lease }: Write): Values {
  return [
    id,
    Buffer.from(change.key),
    seq,
    change.epoch,
    Buffer.from(change.lane),
    dueAt ?? never,
    lease === null ? null : Buffer.from(lease.owner),
    lease?.until ?? null,
    change.state,
  ];
}

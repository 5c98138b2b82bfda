import { randomBytes } from "node:crypto";
import { JournalError } from "../../errors.js";
import { unavailable } from "./failure.js";
import type { Schema } from "./schema.js";
import type { Session, Statement } from "./session.js";

interface Attending {
  readonly session: Session;
  readonly lockKey: string;
  readonly lost: () => void;
}

/**
 * J11: an owner lives as long as a session holds its advisory lock. The server lets go of the lock the moment the
 * session is gone, however its process ended, and whoever can take the lock knows that the owner is dead.
 */
export class Presence {
  readonly #attending = new Map<string, Attending>();
  readonly #statements: PresenceStatements;

  constructor(schema: Schema) {
    this.#statements = presenceStatements(schema);
  }

  /** The lock comes first: an owner that others can see without its lock is dead to them. */
  async attend(session: Session, owner: string, lost: () => void): Promise<void> {
    const lockKey = randomBytes(8).readBigInt64BE().toString();
    await session.run(this.#statements.lock, [lockKey]);
    await session.run(this.#statements.enter, [owner, lockKey]);
    if (session.ended) throw unavailable("the connection to PostgreSQL broke");
    const before = this.#attending.get(owner);
    this.#attending.set(owner, { session, lockKey, lost });
    if (before?.session === session) await session.run(this.#statements.unlock, [before.lockKey]);
  }

  /** An owner that still has leases stays in the table without its lock, so that they are reaped. */
  async leave(owner: string): Promise<void> {
    const attending = this.#attending.get(owner);
    if (attending === undefined) return;
    this.#attending.delete(owner);
    const { session, lockKey } = attending;
    try {
      await session.run(this.#statements.leave, [owner, lockKey]);
      await session.run(this.#statements.unlock, [lockKey]);
    } catch (error) {
      // A session that is gone holds no lock: the owner has left all the same.
      if (!(error instanceof JournalError && error.code === "store-unavailable" && session.ended)) throw error;
    }
  }

  /** The session broke, and the locks with it. */
  lose(): void {
    const lost = [...this.#attending.values()];
    this.#attending.clear();
    for (const attending of lost) queueMicrotask(attending.lost);
  }
}

interface PresenceStatements {
  readonly lock: Statement;
  readonly unlock: Statement;
  readonly enter: Statement;
  readonly leave: Statement;
}

function presenceStatements({ owner, resource }: Schema): PresenceStatements {
  return {
    lock: { name: "osbert lock", text: "select pg_advisory_lock($1::bigint)" },
    unlock: { name: "osbert unlock", text: "select pg_advisory_unlock($1::bigint)" },
    enter: {
      name: "osbert enter",
      text: `insert into ${owner} (id, lock_key) values ($1, $2::bigint) on conflict (id) do update set lock_key = excluded.lock_key`,
    },
    leave: {
      name: "osbert leave",
      text: `
        delete from ${owner}
        where id = $1 and lock_key = $2::bigint and not exists (select from ${resource} where lease_owner = $1)`,
    },
  };
}

import { unavailable } from "./failure.js";
import { lockName, quoted } from "./lock-name.js";
import { type Session, withStoreErrors } from "./session.js";
import type { Sessions } from "./sessions.js";
import { bytes } from "./sql.js";
import type { Tables } from "./tables.js";

/**
 * How often to look whether the session still holds its locks: a connection may break without a word, and others then run what this
 * process runs.
 */
const lookEveryMs = 1_000;

/** A session that does not answer for so long cannot be relied on. */
const answerWithinMs = 3_000;

/** How often to write down when the owners were last seen, for other servers of a cluster. */
const writeEveryMs = 5_000;

/** How long the server may take to notice that an earlier session of the same owner is gone. */
const comeBackWithinS = 2;

/**
 * How long the session may be idle. It never is for so long, because it is looked at: a server that is set to end idle sessions sooner
 * must not end this one. But if the whole machine is gone without a word, the server lets go of the session then.
 */
const idleS = 300;

/** Where locks are kept: they are known to one server only, not to others of its cluster. */
export const thisServer = "concat_ws(':', @@hostname, @@port, @@server_id)";

/**
 * J11: one session of this process holds a server lock for each of its owners. However the process ends, the session ends with it,
 * and the lock is free: that is how others know.
 */
export class Presence {
  readonly #sessions: Sessions;
  readonly #tables: Tables;
  readonly #database: string;
  readonly #now: () => string;
  readonly #lost = new Map<string, () => void>();
  #session: Promise<Session> | undefined;
  #writtenAt = performance.now();

  /** `now` answers the store's clock in SQL. */
  constructor(sessions: Sessions, tables: Tables, database: string, now: () => string) {
    this.#sessions = sessions;
    this.#tables = tables;
    this.#database = database;
    this.#now = now;
  }

  async attend(owner: string, lost: () => void): Promise<void> {
    this.#session ??= this.#hold();
    const session = await this.#session;
    // The server would count the lock twice, and keep it after the owner left once.
    if (this.#lost.has(owner)) {
      this.#lost.set(owner, lost);
      return;
    }
    await withStoreErrors(async () => {
      const [row] = await session.rows(`select get_lock(${this.#lockOf(owner)}, ${comeBackWithinS}) as got`);
      if (Number(row?.got) !== 1) throw unavailable(`another session vouches for the owner ${owner} still`);
      // After the lock: an owner that is written down and has no lock would count as dead.
      await this.#write(session, [owner]).catch(async (error: unknown) => {
        if (!session.ended) await session.rows(`select release_lock(${this.#lockOf(owner)})`);
        throw error;
      });
    });
    if (session.ended) throw unavailable("the session that vouches for owners broke");
    this.#lost.set(owner, lost);
  }

  /** `reap` finds what the owner leaves behind, and needs its row for that. Without leases the row goes at once. */
  async leave(owner: string): Promise<void> {
    const session = await this.#session?.catch(() => undefined);
    if (session === undefined || !this.#lost.delete(owner)) return;
    const { owner: table, resource } = this.#tables;
    await withStoreErrors(async () => {
      await session.change(`delete from ${table} where name = ${bytes(owner)} and not exists
        (select 1 from ${resource} force index (by_owner) where lease_owner = ${bytes(owner)})`);
      await session.rows(`select release_lock(${this.#lockOf(owner)})`);
    });
  }

  /** Lets go of all locks: owners that did not leave count as dead from now on. */
  async close(): Promise<void> {
    const session = await this.#session?.catch(() => undefined);
    const owners = [...this.#lost.keys()];
    this.#lost.clear();
    this.#session = undefined;
    if (session === undefined || session.ended) return;
    try {
      for (const owner of owners) await session.rows(`select release_lock(${this.#lockOf(owner)})`);
      session.release();
    } catch {
      // Closing the connection frees the locks as well.
      session.end();
    }
  }

  /** In SQL. */
  #lockOf(owner: string): string {
    return quoted(lockName("owner", this.#database, this.#tables.prefix, owner));
  }

  #hold(): Promise<Session> {
    let looking: NodeJS.Timeout | undefined;
    const broke = () => {
      clearTimeout(looking);
      if (this.#session === holding) this.#broke();
    };
    const holding = this.#sessions.hold(broke, answerWithinMs).then((session) =>
      withStoreErrors(async () => {
        await session.rows(`set session wait_timeout = ${idleS}`).catch((error: unknown) => {
          session.end();
          throw error;
        });
        const look = async () => {
          await this.#look(session);
          if (!session.ended) looking = setTimeout(() => void look(), lookEveryMs).unref();
        };
        looking = setTimeout(() => void look(), lookEveryMs).unref();
        return session;
      }),
    );
    holding.catch(() => {
      if (this.#session === holding) this.#session = undefined;
    });
    return holding;
  }

  #broke(): void {
    this.#session = undefined;
    const lost = [...this.#lost.values()];
    this.#lost.clear();
    for (const tell of lost) tell();
  }

  /** Does the session still hold every lock? The owners' rows say when this was last so. */
  async #look(session: Session): Promise<void> {
    const owners = [...this.#lost.keys()];
    if (owners.length === 0) return;
    try {
      const held = owners.map((owner) => `coalesce(is_used_lock(${this.#lockOf(owner)}) = connection_id(), 0) = 1`);
      const [row] = await session.rows(`select ${held.join(" and ")} as held`);
      const attending = owners.filter((owner) => this.#lost.has(owner));
      // An owner that left in the meantime is no reason to give up the others.
      // The row is for others to read; that it cannot be written does not break the lock.
      if (Number(row?.held) === 1) await this.#writeAgain(session, attending).catch(() => {});
      else if (attending.length === owners.length) session.end();
    } catch {
      session.end();
    }
  }

  async #writeAgain(session: Session, owners: readonly string[]): Promise<void> {
    if (performance.now() - this.#writtenAt < writeEveryMs) return;
    this.#writtenAt = performance.now();
    await this.#write(session, owners);
  }

  async #write(session: Session, owners: readonly string[]): Promise<void> {
    if (owners.length === 0) return;
    const rows = owners.map((owner) => `(${bytes(owner)}, ${this.#lockOf(owner)}, ${thisServer}, ${this.#now()})`);
    await session.change(`insert into ${this.#tables.owner} (name, lock_name, server, seen_at) values ${rows.join(", ")}
      on duplicate key update lock_name = values(lock_name), server = values(server), seen_at = values(seen_at)`);
  }
}

import { setTimeout as sleep } from "node:timers/promises";
import { HeldSession, type Patience, takeConnection } from "./connections.js";
import type { MysqlPool } from "./driver.js";
import { lostToOthers, unavailable } from "./failure.js";
import { Session, withStoreErrors } from "./session.js";

/** Sessions out of the user's pool, set up for the store's statements. Everything rejects with the store's errors. */
export class Sessions {
  readonly #pool: MysqlPool;
  readonly #patience: Patience;
  readonly #warm = new Set<Warm>();

  constructor(pool: MysqlPool, patience: Patience) {
    // Without a callback, such a pool would throw where nobody can catch it.
    if (pool.getConnection.length > 0)
      throw new TypeError("the store needs a pool of mysql2/promise, not one of mysql2");
    this.#pool = pool;
    this.#patience = patience;
  }

  /** Runs statements, each a transaction of its own. */
  use<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return withStoreErrors(async () => {
      const session = new Session(await takeConnection(this.#pool, this.#patience), this.#patience.answerWithinMs);
      try {
        return await work(session);
      } finally {
        session.release();
      }
    });
  }

  /**
   * Runs statements as one transaction, and all of it again if the server undoes it because of others. With `more` to come, the next
   * transaction is begun along with the commit of this one, which saves it a round trip.
   */
  async transaction<T>(work: (session: Session) => Promise<T>, more = false): Promise<T> {
    const giveUpAt = performance.now() + this.#patience.answerWithinMs;
    return withStoreErrors(async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await this.#attempt(work, more);
        } catch (error) {
          if (!lostToOthers(error)) throw error;
          if (performance.now() > giveUpAt) throw unavailable("others kept changing the same resources", error);
          if (attempt > 1) await sleep(Math.min(2 ** attempt, 100));
        }
      }
    });
  }

  /** A session to keep. `onEnd` is called once when it ends by anything but `release`. */
  hold(onEnd: () => void, answerWithinMs: number): Promise<Session> {
    return withStoreErrors(async () => {
      const connection = await takeConnection(this.#pool, this.#patience);
      return new HeldSession(connection, answerWithinMs, onEnd);
    });
  }

  /** Gives back what is kept for a next transaction. */
  async close(): Promise<void> {
    await Promise.all([...this.#warm].map((warm) => this.#cool(warm)));
  }

  async #attempt<T>(work: (session: Session) => Promise<T>, more: boolean): Promise<T> {
    const { session, since } = this.#takeWarm() ?? (await this.#begin());
    try {
      const result = await work(session);
      if (more && performance.now() - since < warmAtMostMs) {
        await session.rows("commit and chain");
        this.#keepWarm(session, since);
      } else {
        await session.rows("commit");
        session.release();
      }
      return result;
    } catch (error) {
      await undo(session);
      throw error;
    }
  }

  async #begin(): Promise<{ readonly session: Session; readonly since: number }> {
    const session = new Session(await takeConnection(this.#pool, this.#patience), this.#patience.answerWithinMs);
    try {
      await session.rows("start transaction");
    } catch (error) {
      session.release();
      throw error;
    }
    return { session, since: performance.now() };
  }

  #takeWarm(): Warm | undefined {
    for (const warm of this.#warm) {
      clearTimeout(warm.timer);
      this.#warm.delete(warm);
      return warm;
    }
    return undefined;
  }

  #keepWarm(session: Session, since: number): void {
    const warm: Warm = { session, since, timer: setTimeout(() => void this.#cool(warm), warmIdleMs) };
    this.#warm.add(warm);
  }

  async #cool(warm: Warm): Promise<void> {
    clearTimeout(warm.timer);
    if (this.#warm.delete(warm)) await undo(warm.session);
  }
}

/** A session whose next transaction has begun. It has read nothing yet, so that it holds no lock. */
interface Warm {
  readonly session: Session;
  readonly since: number;
  readonly timer: NodeJS.Timeout;
}

/** How long a session waits for a next transaction. */
const warmIdleMs = 5;

/** Then it goes back even if there is more to do: others may wait for a connection of a small pool. */
const warmAtMostMs = 100;

/** If the roll-back does not come through, closing the connection does the same. */
async function undo(session: Session): Promise<void> {
  if (session.ended) return;
  await session.rows("rollback").catch(() => session.end());
  session.release();
}

import { JournalError } from "../../errors.js";
import type { PostgresPool } from "./driver.js";
import { lostToOthers } from "./failure.js";
import { type Row, Session, type Statement, type Value } from "./session.js";

export interface SessionsOptions {
  /** At most so many at a time. */
  readonly max: number;
  /** How long to wait for a connection, and for an answer. */
  readonly timeoutMs: number;
}

interface Waiting {
  readonly resolve: (session: Session) => void;
  readonly reject: (reason: unknown) => void;
}

/** How often a statement is run that the server undoes because of others. */
const attempts = 6;

/**
 * A session that nobody used for so long is given up: a firewall may have forgotten it, and others may want the
 * connection.
 */
const idleMs = 30_000;

/**
 * The few sessions over which the store's statements run. They are opened when they are needed, and renewed when they
 * break.
 */
export class Sessions {
  readonly #pool: PostgresPool;
  readonly #options: SessionsOptions;
  readonly #idle: { readonly session: Session; readonly since: number }[] = [];
  readonly #waiting: Waiting[] = [];
  readonly #ending = new Set<Promise<void>>();
  readonly #closing: (() => void)[] = [];
  /** Open ones, idle or in use. */
  #held = 0;
  #opening = 0;
  #closed = false;
  #sweep: NodeJS.Timeout | undefined;

  constructor(pool: PostgresPool, options: SessionsOptions) {
    this.#pool = pool;
    this.#options = options;
  }

  /** Runs one statement as a transaction of its own, again if the server undid it because of others. */
  async run(statement: Statement, values: Value[]): Promise<readonly Row[]> {
    for (let attempt = 1; ; attempt++) {
      const session = await this.#take();
      try {
        return await session.run(statement, values);
      } catch (error) {
        if (attempt >= attempts || !lostToOthers(error)) throw error;
      } finally {
        this.#giveBack(session);
      }
    }
  }

  /** Waits for what is under way, and ends all sessions. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweep);
    for (const { session } of this.#idle.splice(0)) this.#end(session);
    if (this.#held + this.#opening > 0) await new Promise<void>((resolve) => this.#closing.push(resolve));
    await Promise.all(this.#ending);
  }

  async #take(): Promise<Session> {
    if (this.#closed) throw new JournalError("stopped", "the PostgreSQL store is closed");
    for (let found = this.#idle.pop(); found !== undefined; found = this.#idle.pop()) {
      if (!found.session.ended) return found.session;
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#openForWaiting();
    });
  }

  #giveBack(session: Session): void {
    if (session.ended) {
      this.#openForWaiting();
      return;
    }
    const next = this.#waiting.shift();
    if (next !== undefined) next.resolve(session);
    else if (this.#closed) this.#end(session);
    else this.#keep(session);
  }

  #openForWaiting(): void {
    while (this.#waiting.length > this.#opening && this.#held + this.#opening < this.#options.max) void this.#open();
  }

  async #open(): Promise<void> {
    this.#opening++;
    try {
      const session = await Session.open(this.#pool, this.#options.timeoutMs);
      this.#opening--;
      this.#held++;
      session.onEnd(() => {
        this.#held--;
        this.#answerClosing();
      });
      this.#giveBack(session);
    } catch (error) {
      this.#opening--;
      // While another session lives, it serves those who wait: the pool may just be smaller than what was asked for.
      if (this.#held + this.#opening === 0) for (const { reject } of this.#waiting.splice(0)) reject(error);
      this.#answerClosing();
    }
  }

  #keep(session: Session): void {
    this.#idle.push({ session, since: performance.now() });
    this.#sweep ??= setInterval(() => this.#endIdle(), idleMs / 3).unref();
  }

  /** The first ones are those that were idle longest. */
  #endIdle(): void {
    const before = performance.now() - idleMs;
    while (this.#idle[0] !== undefined && this.#idle[0].since < before) {
      const { session } = this.#idle[0];
      this.#idle.shift();
      this.#end(session);
    }
    if (this.#idle.length > 0) return;
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }

  #end(session: Session): void {
    const ending = session.end().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  #answerClosing(): void {
    if (this.#closed && this.#held + this.#opening === 0) for (const resolve of this.#closing.splice(0)) resolve();
  }
}

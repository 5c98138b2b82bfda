import { unavailable } from "./failure.js";
import type { Session } from "./session.js";

export interface DedicatedOptions {
  readonly open: () => Promise<Session>;
  /** Prepares a new session; `again` if it takes the place of one that broke. */
  readonly up: (session: Session, again: boolean) => Promise<void>;
  /** The session broke. */
  readonly down: () => void;
  /** Between tries to come back: 0 to 1. */
  readonly random?: () => number;
}

const shortestPauseMs = 100;
const longestPauseMs = 5_000;
/**
 * A session that leads nowhere is found out within the sum of both: a network may forget a connection without a word to
 * either end, and the server may end a session without its word getting through. Others then run what this process
 * runs, so it must not be long.
 */
const heartbeatMs = 1_000;
const answerWithinMs = 2_000;

/**
 * One session that is there all the time. If it breaks a new one is opened, after pauses that grow while the server
 * stays away.
 */
export class Dedicated {
  readonly #options: DedicatedOptions;
  #session: Session | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #stopped = false;

  constructor(options: DedicatedOptions) {
    this.#options = options;
  }

  /** Rejects if the first session cannot be opened. */
  start(): Promise<void> {
    return this.#connect(false);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#session?.end();
  }

  /** Throws `store-unavailable` while there is none. */
  get session(): Session {
    if (this.#session === undefined) throw unavailable("the connection to PostgreSQL broke");
    return this.#session;
  }

  async #connect(again: boolean): Promise<void> {
    const session = await this.#options.open();
    try {
      if (!this.#stopped) await this.#options.up(session, again);
    } catch (error) {
      await session.end();
      throw error;
    }
    // `stop` has not seen this one.
    if (this.#stopped) {
      await session.end();
      return;
    }
    this.#failures = 0;
    this.#session = session;
    this.#timer = setTimeout(() => void this.#heartbeat(session), heartbeatMs).unref();
    session.onEnd(() => this.#broken());
  }

  #broken(): void {
    this.#session = undefined;
    clearTimeout(this.#timer);
    if (this.#stopped) return;
    this.#options.down();
    this.#comeBackLater();
  }

  #comeBackLater(): void {
    const pauseMs = Math.min(longestPauseMs, shortestPauseMs * 2 ** this.#failures);
    const random = this.#options.random ?? Math.random;
    this.#failures++;
    this.#timer = setTimeout(
      () => {
        this.#connect(true).catch(() => {
          if (!this.#stopped) this.#comeBackLater();
        });
      },
      pauseMs * (0.5 + random() / 2),
    ).unref();
  }

  /** A failure ends the session, which is noticed there. */
  async #heartbeat(session: Session): Promise<void> {
    const late = setTimeout(() => void session.end(), answerWithinMs).unref();
    await session.run({ name: "osbert heartbeat", text: "select" }, []).catch(() => {});
    clearTimeout(late);
    if (!session.ended) this.#timer = setTimeout(() => void this.#heartbeat(session), heartbeatMs).unref();
  }
}

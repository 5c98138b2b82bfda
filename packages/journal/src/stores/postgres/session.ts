import type { PostgresClient, PostgresPool, PostgresQuery } from "./driver.js";
import { asStoreError, endsSession, unavailable } from "./failure.js";

/** A statement that is prepared once a session. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

type Query = Omit<PostgresQuery, "rowMode" | "types">;

export type Value = string | number | boolean | null;

/** PostgreSQL's own texts. */
export type Row = readonly (string | null)[];

/**
 * One client of the pool, set up for the store's statements. It is closed after use, never given back: its settings
 * would surprise whoever got it next.
 */
export class Session {
  readonly #client: PostgresClient;
  readonly #timeoutMs: number;
  readonly #onEnd: (() => void)[] = [];
  /** Resolves when the connection is closed. */
  readonly #closed: Promise<void>;
  #last: Promise<unknown> = Promise.resolve();
  #ended = false;

  private constructor(client: PostgresClient, timeoutMs: number) {
    this.#client = client;
    this.#timeoutMs = timeoutMs;
    client.on("error", () => void this.end());
    client.on("end", () => void this.end());
    this.#closed = new Promise((resolve) => client.on("end", resolve));
  }

  /**
   * Rejects with `store-unavailable` if there is none within the time: a pool that is used up by others would wait for
   * ever.
   */
  static async open(pool: PostgresPool, timeoutMs: number): Promise<Session> {
    const session = await acquire(pool, timeoutMs, (client) => new Session(client, timeoutMs));
    try {
      await session.run(settings, []);
      // The server may have hung up right behind its answer.
      if (session.ended) throw unavailable("the connection to PostgreSQL broke");
      return session;
    } catch (error) {
      void session.end();
      throw error;
    }
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Rejects with `store-unavailable` if the answer does not come in time; the session has ended then. */
  run(statement: Statement, values: Value[]): Promise<readonly Row[]> {
    return this.#query({ name: statement.name, text: statement.text, values }, this.#timeoutMs);
  }

  /** Several statements at once without values, however long they take. */
  script(text: string): Promise<readonly Row[]> {
    return this.#query({ text }, undefined);
  }

  /** One after the other: node-postgres gives up doing that by itself. */
  #query(query: Query, timeoutMs: number | undefined): Promise<readonly Row[]> {
    const answer = this.#last.then(() => this.#send(query, timeoutMs));
    this.#last = answer.catch(() => {});
    return answer;
  }

  async #send(query: Query, timeoutMs: number | undefined): Promise<readonly Row[]> {
    if (this.#ended) throw unavailable("the connection to PostgreSQL broke");
    try {
      const answer = this.#client.query({ ...query, rowMode: "array", types: asText });
      const { rows }: { readonly rows?: unknown } = await (timeoutMs === undefined
        ? answer
        : within(answer, timeoutMs, "PostgreSQL did not answer"));
      // A script of several statements answers none.
      return (rows ?? []) as readonly Row[];
    } catch (error) {
      if (endsSession(error)) void this.end();
      throw asStoreError(error);
    }
  }

  /** Calls back once when the session ends, for whatever reason; at once if it has ended. */
  onEnd(listener: () => void): void {
    if (this.#ended) listener();
    else this.#onEnd.push(listener);
  }

  onNotification(listener: (payload: string) => void): void {
    this.#client.on("notification", ({ payload = "" }) => listener(payload));
  }

  /** Resolves when the server has been told, or does not care to hear it. */
  async end(): Promise<void> {
    if (!this.#ended) {
      this.#ended = true;
      this.#client.release(true);
      for (const listener of this.#onEnd) listener();
    }
    await within(this.#closed, farewellMs, "PostgreSQL did not hang up").catch(() => {});
  }
}

const farewellMs = 1_000;

/** Rejects with `store-unavailable` if a promise takes too long. */
async function within<T>(promise: Promise<T>, timeoutMs: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(unavailable(`${what} within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** `hold` adds the listeners of a client that was given, while the pool is still giving it. */
async function acquire<T>(pool: PostgresPool, timeoutMs: number, hold: (client: PostgresClient) => T): Promise<T> {
  let late = false;
  const acquiring = new Promise<T>((resolve, reject) => {
    pool.connect((error, client) => {
      if (client === undefined) reject(error ?? new Error("the pool gave no client"));
      // One that comes after all must not stay taken.
      else if (late) client.release();
      else resolve(hold(client));
    });
  });
  try {
    return await within(acquiring, timeoutMs, "the pool gave no connection to PostgreSQL");
  } catch (error) {
    late = true;
    throw asStoreError(error);
  }
}

const asText = { getTypeParser: () => (text: string) => text };

/**
 * The planner would choose by the size that the tables have when a statement is prepared. One that is prepared on empty
 * tables would read them as a whole, and go on with that while they grow. All statements here are made for nested loops
 * over indexes, so it is told to use these: the cost stays the same at any size (J10), and rows are locked in the order
 * they are given in.
 *
 * synchronous_commit: a database or role may be set to lose commits that were answered, which J1 forbids.
 */
const settings: Statement = {
  name: "osbert settings",
  text: `select ${[
    ["enable_seqscan", "off"],
    ["enable_hashjoin", "off"],
    ["enable_mergejoin", "off"],
    ["enable_bitmapscan", "off"],
    ["plan_cache_mode", "force_generic_plan"],
    ["jit", "off"],
    ["search_path", "pg_catalog"],
    ["default_transaction_isolation", "read committed"],
  ]
    .map(([name, value]) => `set_config('${name}', '${value}', false)`)
    .join(", ")},
    case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', false) end`,
};

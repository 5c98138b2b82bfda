import type { MysqlConnection, MysqlStatement, MysqlValue } from "./driver.js";
import { asStoreError, endsSession } from "./failure.js";

export type Row = Readonly<Record<string, unknown>>;

/** A connection of the pool, for as long as one piece of work has it. */
export class Session {
  readonly #connection: MysqlConnection;
  readonly #timeoutMs: number;
  #ended = false;

  constructor(connection: MysqlConnection, timeoutMs: number) {
    this.#connection = connection;
    this.#timeoutMs = timeoutMs;
  }

  /** Runs SQL without values. Rejects with the driver's error. */
  async rows(sql: string): Promise<readonly Row[]> {
    return (await this.#run("query", { sql, timeout: this.#timeoutMs, ...asItIs })) as readonly Row[];
  }

  /** Runs SQL that changes something, and answers how many rows it found to change. */
  async change(sql: string): Promise<number> {
    const header = await this.#run("query", { sql, timeout: this.#timeoutMs, ...asItIs });
    return Number((header as { readonly affectedRows?: unknown }).affectedRows);
  }

  /** Runs SQL that gives a number to `last_insert_id`, and answers it. */
  async number(sql: string): Promise<number> {
    const header = await this.#run("query", { sql, timeout: this.#timeoutMs, ...asItIs });
    return Number((header as { readonly insertId?: unknown }).insertId);
  }

  /** Runs SQL that may take as long as it needs. */
  async script(sql: string): Promise<void> {
    await this.#run("query", { sql, ...asItIs });
  }

  /** As `rows`, prepared once a connection: the text must be one of few. */
  async preparedRows(sql: string, values: MysqlValue[]): Promise<readonly Row[]> {
    return (await this.#run("execute", { sql, values, timeout: this.#timeoutMs, ...asItIs })) as readonly Row[];
  }

  /** Prepared in the same way. Answers what the statement gave to `last_insert_id`, or 0. */
  async preparedInsert(sql: string, values: MysqlValue[]): Promise<number> {
    const header = await this.#run("execute", { sql, values, timeout: this.#timeoutMs, ...asItIs });
    return Number((header as { readonly insertId?: unknown }).insertId);
  }

  /** Prepared in the same way. Answers how many rows it found to change. */
  async preparedChange(sql: string, values: MysqlValue[]): Promise<number> {
    const header = await this.#run("execute", { sql, values, timeout: this.#timeoutMs, ...asItIs });
    return Number((header as { readonly affectedRows?: unknown }).affectedRows);
  }

  /** Back to the pool, unless it was closed. */
  release(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#connection.release();
  }

  /** Closed: the server undoes what was not committed, and lets go of locks. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#connection.destroy();
  }

  /** The connection went by itself. It must not be closed as well: mysql2 would then forget to answer what is under way. */
  lose(): void {
    this.#ended = true;
  }

  /** Released, closed or lost: of no more use to whoever had it. */
  get ended(): boolean {
    return this.#ended;
  }

  async #run(how: "query" | "execute", statement: MysqlStatement): Promise<unknown> {
    try {
      const [answer] = await this.#connection[how](statement);
      return answer;
    } catch (error) {
      // Also after a timeout: the answer may still come, and would be taken for that of the next statement.
      if (endsSession(error)) this.end();
      throw error;
    }
  }
}

/** A setting of the pool must not change how rows look. */
const asItIs = { rowsAsArray: false, nestTables: false, typeCast: true, namedPlaceholders: false } as const;

/** Runs what uses a session and throws what a caller of the store may see. */
export async function withStoreErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw asStoreError(error);
  }
}

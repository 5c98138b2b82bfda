/**
 * What the store calls of a connection pool. A pool of `mysql2/promise` is one; the store brings no driver of its own.
 *
 * Give the store a pool of its own, with connections in utf8mb4 (mysql2's default) and without `resetOnRelease`: it changes settings
 * of its sessions (isolation level, SQL mode, lock wait) and leaves them so. It holds one connection for as long as an owner attends,
 * `writers` more while it commits, and a few for a moment; mysql2's default of 10 is enough. Whoever made the pool ends it.
 *
 * Each connection keeps up to about a hundred prepared statements; where some twenty processes share a server, raise its
 * max_prepared_stmt_count.
 */
export interface MysqlPool {
  getConnection(): Promise<MysqlConnection>;
}

/** A connection that was taken from the pool. */
export interface MysqlConnection {
  /** In text, parsed by the server each time. */
  query(statement: MysqlStatement): Promise<readonly [unknown, unknown]>;
  /** Prepared once a connection, with values beside it. */
  execute(statement: MysqlStatement): Promise<readonly [unknown, unknown]>;
  /** Gives it back to the pool. */
  release(): void;
  /** Closes it; the pool opens another one when it needs it. */
  destroy(): void;
  /** What stays the same each time that the pool hands this connection out. */
  readonly connection: MysqlSocket;
}

export interface MysqlSocket {
  on(event: "error" | "end", listener: () => void): unknown;
}

/** All that decides how rows come is said here, whatever the pool is set to. */
export interface MysqlStatement {
  readonly sql: string;
  readonly values?: MysqlValue[];
  /** In milliseconds. */
  readonly timeout?: number;
  readonly rowsAsArray: false;
  readonly nestTables: false;
  readonly typeCast: true;
  readonly namedPlaceholders: false;
}

/** Buffers where bytes are compared, strings for texts. */
export type MysqlValue = string | number | Buffer | null;

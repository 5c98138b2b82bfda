import type { Store } from "../../store.js";
import type { MysqlPool } from "./driver.js";
import { MysqlStore } from "./mysql-store.js";

export type { MysqlConnection, MysqlPool, MysqlSocket, MysqlStatement, MysqlValue } from "./driver.js";

export interface MysqlStoreOptions {
  /** What the names of the store's tables begin with. Default "osbert_". */
  readonly prefix?: string;
  /** For tests: the store's clock, in milliseconds since 1970. Default: the server's. */
  readonly clock?: () => number;
  /** Bring the schema up to date when the store is opened. Default true; `false` only checks it. */
  readonly migrate?: boolean;
  /** How many transactions commit at the same time, each over a connection of the pool. Default 3. */
  readonly writers?: number;
  /** How long to wait for a connection of the pool, in milliseconds. Default 10,000. */
  readonly connectWithinMs?: number;
  /** How long to wait for the answer to a statement, in milliseconds. Default 30,000. */
  readonly answerWithinMs?: number;
}

/**
 * A store in a database of MariaDB 10.6 or newer, or MySQL 8, for any number of processes. `pool` is one of `mysql2/promise`, for the
 * store alone; see `MysqlPool`.
 *
 * Commits are as durable as the server's commits are: it must run with innodb_flush_log_at_trx_commit = 1, which is the default.
 * Tested on MariaDB 10.11; the SQL is written to be understood by MySQL 8 as well, which it was not run on.
 */
export function mysqlStore(pool: MysqlPool, options: MysqlStoreOptions = {}): Store {
  return new MysqlStore(pool, {
    prefix: "osbert_",
    migrate: true,
    writers: 3,
    connectWithinMs: 10_000,
    answerWithinMs: 30_000,
    ...options,
  });
}

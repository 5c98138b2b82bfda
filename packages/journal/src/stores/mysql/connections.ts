import type { MysqlConnection, MysqlPool, MysqlSocket } from "./driver.js";
import { unavailable } from "./failure.js";
import { Session } from "./session.js";

export interface Patience {
  /** How long to wait for a connection of the pool. */
  readonly connectWithinMs: number;
  /** How long to wait for the answer to a statement, and how long to repeat what is undone because of others. */
  readonly answerWithinMs: number;
}

/** A connection of the pool, set up for the store's statements. */
export async function takeConnection(pool: MysqlPool, patience: Patience): Promise<MysqlConnection> {
  const connection = await acquire(pool, patience.connectWithinMs);
  if (!holders.has(connection.connection)) await setUp(connection, patience.answerWithinMs);
  return connection;
}

/** A session to keep. `onEnd` is called once when it ends by anything but `release`. */
export class HeldSession extends Session {
  #onEnd: (() => void) | undefined;

  constructor(connection: MysqlConnection, timeoutMs: number, onEnd: () => void) {
    super(connection, timeoutMs);
    this.#onEnd = onEnd;
    holders.set(connection.connection, this);
  }

  override release(): void {
    this.#onEnd = undefined;
    super.release();
  }

  override end(): void {
    super.end();
    this.#tell();
  }

  override lose(): void {
    super.lose();
    this.#tell();
  }

  #tell(): void {
    const onEnd = this.#onEnd;
    this.#onEnd = undefined;
    onEnd?.();
  }
}

/** Connections that were set up, by whichever store of this process, and the session that somebody holds over them. */
const holders = new WeakMap<MysqlSocket, HeldSession | undefined>();

/**
 * read committed: under MySQL's default, looking for a key that is not there locks the gap, and two who create resources wait for
 * each other. sql_mode: what does not fit must be refused, not cut.
 */
const settings: readonly string[] = [
  "set session transaction isolation level read committed",
  "set session autocommit = 1, sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = 5",
];

async function setUp(connection: MysqlConnection, answerWithinMs: number): Promise<void> {
  const { connection: socket } = connection;
  // mysql2's pool listens for one error only; a second one without a listener would end the process.
  socket.on("error", () => holders.get(socket)?.lose());
  socket.on("end", () => holders.get(socket)?.lose());
  const session = new Session(connection, answerWithinMs);
  try {
    for (const setting of settings) await session.rows(setting);
  } catch (error) {
    session.end();
    throw error;
  }
  holders.set(socket, undefined);
}

/** Rejects if there is no connection in time: a pool that is used up by others would wait for ever. */
function acquire(pool: MysqlPool, withinMs: number): Promise<MysqlConnection> {
  const acquiring = pool.getConnection();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(unavailable(`the pool gave no connection to the MySQL server within ${withinMs} ms`));
      // One that comes after all must not stay taken.
      acquiring.then(
        (connection) => connection.release(),
        () => {},
      );
    }, withinMs);
    void acquiring.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

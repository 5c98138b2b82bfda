import type { SqliteStore, SqliteStoreOptions } from "./options.js";
import { EmbeddedStore } from "./store.js";

export type { SqliteStats, SqliteStore, SqliteStoreOptions } from "./options.js";

/**
 * A journal in one SQLite file, owned by one process: the embedded default. It is made at the first start, readable
 * by its user alone, with `-wal`, `-shm` and `-owner` files beside it. Put it on a local disk: locks of network file
 * systems cannot be trusted.
 *
 * Changes are written by a thread of its own, many with one durable write (J12); reads are made where they are asked,
 * in about 10 µs. A second process, or a second store, that opens the same file is refused with `owned-elsewhere`, also
 * after the file was renamed or its `-owner` file removed. The end of the owner, however sudden, frees the file at once.
 *
 * The store does not keep the process alive, except while something that was asked of it is under way.
 * `process.exit()` does not wait for that: await what you asked, or `close()`.
 */
export function sqliteStore(path: string, options: SqliteStoreOptions = {}): SqliteStore {
  return new EmbeddedStore(path, options);
}

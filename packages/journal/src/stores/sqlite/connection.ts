import Database from "better-sqlite3";
import type { WriterSettings } from "./protocol.js";

export type Connection = Database.Database;

/** Another program that writes (the `sqlite3` shell, a backup) is waited for so long. */
const busyTimeoutMs = 5_000;

/** The one connection that writes. Lives in the writer thread. */
export function openForWriting({ path, synchronous, maxPages }: WriterSettings): Connection {
  const database = new Database(path, { timeout: busyTimeoutMs, fileMustExist: true });
  try {
    database.pragma("journal_mode = wal");
    database.pragma(`synchronous = ${synchronous}`);
    // Where fsync does not reach the disk itself (macOS), ask for what does. Has no effect elsewhere.
    database.pragma("fullfsync = on");
    database.pragma("cache_size = -8000");
    // Copying the log is left to checkpoints.ts; this is for the case that it cannot keep up.
    database.pragma("wal_autocheckpoint = 64000");
    database.pragma("temp_store = memory");
    database.pragma("trusted_schema = off");
    if (maxPages !== null) database.pragma(`max_page_count = ${maxPages}`);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** A connection that copies the log into the database file, and writes nothing of its own. */
export function openForCheckpoints(path: string): Connection {
  const database = new Database(path, { timeout: busyTimeoutMs, fileMustExist: true });
  // The log is overwritten once it was copied, so that the copy must be on the disk before.
  database.pragma("synchronous = full");
  database.pragma("checkpoint_fullfsync = on");
  return database;
}

/** A connection that cannot write, for point reads on the main thread. */
export function openForReading(path: string): Connection {
  const database = new Database(path, { readonly: true, timeout: busyTimeoutMs, fileMustExist: true });
  // Half of the driver's own: each commit of the writer empties it, and the system keeps the pages of the file anyway.
  database.pragma("cache_size = -8000");
  database.pragma("trusted_schema = off");
  return database;
}

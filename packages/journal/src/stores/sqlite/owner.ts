import Database from "better-sqlite3";
import { JournalError } from "../../errors.js";
import { makePrivateFile } from "./private-file.js";

/**
 * Makes this store the one owner of the database at `path` (canonical), or throws `owned-elsewhere` and changes
 * nothing. Answers how to let go.
 *
 * The lock is SQLite's own exclusive lock on a file of its own beside the database, because the database itself must
 * stay readable for this process's reads. The operating system frees it when the process ends, however it ends; the
 * file stays, empty, since removing a lock file races with whoever opens it.
 */
export function takeOwnership(path: string): () => void {
  // POSIX locks do not keep a process from itself. SQLite does, but only where both stores use the same copy of it.
  const owned = ownedByThisProcess();
  if (owned.has(path)) {
    throw new JournalError(
      "owned-elsewhere",
      `${path} is in use by another store of this process; share that one, or close it`,
    );
  }
  const file = `${path}-owner`;
  makePrivateFile(file);
  const lock = new Database(file, { timeout: 0 });
  try {
    lock.pragma("journal_mode = memory");
    lock.exec("begin exclusive");
  } catch (cause) {
    lock.close();
    if (!isBusy(cause)) throw cause;
    throw new JournalError(
      "owned-elsewhere",
      `${path} is in use by another process; a SQLite journal has one owner at a time. End that process, or use a PostgreSQL store to share`,
      { cause },
    );
  }
  owned.add(path);
  return () => {
    lock.close();
    owned.delete(path);
  };
}

/** One set for all copies of this module that may be loaded. */
function ownedByThisProcess(): Set<string> {
  const name = Symbol.for("@osbert/journal/sqlite owned paths");
  const shared = globalThis as { [name]?: Set<string> };
  shared[name] ??= new Set();
  return shared[name];
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && String((error as { code?: unknown }).code).startsWith("SQLITE_BUSY");
}

import { statSync } from "node:fs";
import Database from "better-sqlite3";
import { JournalError } from "../../errors.js";
import { makePrivateFile } from "./private-file.js";

export interface Ownership {
  /** The inode of the lock file. */
  readonly lockFile: bigint;
  readonly letGo: () => void;
}

/**
 * Makes this store the one owner of the database at `path` (canonical), or throws `owned-elsewhere` and changes
 * nothing; makes the file if there is none. The writer then makes sure that it is the right lock; see confirm-ownership.ts.
 *
 * The lock is SQLite's own exclusive lock on a file of its own beside the database, because the database itself must
 * stay readable for this process's reads. The operating system frees it when the process ends, however it ends; the
 * file stays, empty, since removing a lock file races with whoever opens it.
 */
export function takeOwnership(path: string): Ownership {
  checkNames(path);
  checkLog(path);
  // POSIX locks do not keep a process from itself. SQLite does, but only where both stores use the same copy of it.
  const owned = ownedByThisProcess();
  if (owned.has(path) || owned.has(identityOf(path) ?? "")) {
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
  // Before SQLite makes it, which would let others read it.
  makePrivateFile(path);
  const names = [path, identityOf(path) ?? ""];
  for (const name of names) owned.add(name);
  const letGo = () => {
    lock.close();
    for (const name of names) owned.delete(name);
  };
  // SQLite's integers have a sign. The inode of a file that someone has locked is not given to another one.
  return { lockFile: BigInt.asIntN(64, statSync(file, { bigint: true }).ino), letGo };
}

/** Part of a database lies in the log beside it, which goes by name: under another name it would be missing. */
function checkNames(path: string): void {
  const names = statSync(path, { throwIfNoEntry: false })?.nlink ?? 1;
  if (names <= 1) return;
  throw new JournalError(
    "owned-elsewhere",
    `${path} is one of ${names} names of the same file (hard links); a SQLite journal must have one, or parts of it would be overlooked. Remove the others`,
  );
}

/** The log of a database that is not there holds what was accepted last: a new database would do away with it. */
function checkLog(path: string): void {
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false });
  if (log === undefined || log.size === 0 || statSync(path, { throwIfNoEntry: false }) !== undefined) return;
  throw new JournalError(
    "owned-elsewhere",
    `${path} is not there, but its log ${path}-wal is: the database was moved away without it. Put it back; or move the log to where the database is now, or away if what it holds is not wanted`,
  );
}

/** Stays the same when a file is renamed. */
function identityOf(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `device ${found.dev}, inode ${found.ino}`;
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

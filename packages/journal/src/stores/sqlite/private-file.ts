import { closeSync, openSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/**
 * Makes an empty file that only its user may read, if there is none: journals hold secrets. SQLite gives the files
 * that it puts beside a database the same permissions.
 *
 * A file that exists is not touched, not even opened: with POSIX locks, closing any descriptor of a file drops all
 * locks that the process has on it, among them those of SQLite.
 */
export function makePrivateFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** The one name of a file that may not exist yet. Two ways to the same file must lead to the same lock. */
export function canonicalPath(path: string): string {
  const full = resolve(path);
  try {
    return realpathSync(full);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return join(realpathSync(dirname(full)), basename(full));
  }
}

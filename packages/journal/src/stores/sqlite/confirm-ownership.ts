import type { Database } from "better-sqlite3";
import { JournalError } from "../../errors.js";
import type { WriterSettings } from "./protocol.js";

/**
 * Makes sure that the lock which this process has (see owner.ts) is the one that counts for this database, or throws `owned-elsewhere`. A
 * lock file beside the database is found by name, and names can be changed while somebody works under them: the database renamed, the lock
 * file removed. So the database remembers its lock file. Whoever has the lock of that one is alone with it.
 *
 * Whoever has another one asks the operating system whether anybody has the database itself open: everyone who reads or writes it holds
 * SQLite's shared lock, whatever name it was opened by, and the exclusive one is to be had only if there is nobody else. This also finds
 * programs that merely look into the file, which is why it is not asked at every start. From exclusive to shared there is no
 * moment without a lock, and in between the file learns of its new lock file.
 */
export function confirmOwnership(
  database: Database,
  { path, lockFile }: Pick<WriterSettings, "path" | "lockFile">,
  migrate: (database: Database) => void,
): void {
  if (rememberedLockFile(database) === lockFile) {
    migrate(database);
    return;
  }
  database.pragma("locking_mode = exclusive");
  lockAlone(database, path);
  migrate(database);
  database
    .prepare("insert into meta (name, value) values (?, ?) on conflict do update set value = excluded.value")
    .run(remembered, lockFile);
  // Out of the log, which belongs to one name, into the file, which is the same under every name.
  database.pragma("wal_checkpoint(full)");
  database.pragma("locking_mode = normal");
  // The mode changes with the next transaction.
  database.exec("begin immediate; commit");
}

const remembered = "lock file";

/** Whoever looks into the file for a moment only is waited for so long. */
const shortLookMs = 1_000;

function rememberedLockFile(database: Database): bigint | undefined {
  const hasMeta = database.prepare("select 1 from sqlite_master where type = 'table' and name = 'meta'").get();
  if (hasMeta === undefined) return undefined;
  const found = database.prepare("select value from meta where name = ?").raw().safeIntegers().get(remembered);
  return (found as readonly [bigint] | undefined)?.[0];
}

function lockAlone(database: Database, path: string): void {
  const patienceMs = Number(database.pragma("busy_timeout", { simple: true }));
  try {
    database.pragma(`busy_timeout = ${shortLookMs}`);
    database.exec("begin immediate; commit");
    database.pragma(`busy_timeout = ${patienceMs}`);
  } catch (cause) {
    if (!String((cause as { code?: unknown }).code).startsWith("SQLITE_BUSY")) throw cause;
    throw new JournalError(
      "owned-elsewhere",
      `${path} is in use by another process, and its lock file ${path}-owner is not the one that it was last used with: the database was renamed or copied, or the lock file removed, maybe while its owner works on. End whoever has the database open`,
      { cause },
    );
  }
}

import { cpus, loadavg, totalmem } from "node:os";
import Database from "better-sqlite3";

export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  readonly memoryGb: number;
  readonly node: string;
  /** The versions of the stores that took part. */
  readonly stores: readonly string[];
  /** How many wanted the cores in the minute before the run. */
  readonly load: number;
}

export function describeMachine(servers: readonly string[]): Machine {
  return {
    cores: cpus().length,
    cpu: cpus()[0]?.model ?? "unknown",
    memoryGb: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    stores: [`SQLite ${sqliteVersion()}`, ...servers],
    load: loadavg()[0] ?? 0,
  };
}

function sqliteVersion(): string {
  const database = new Database(":memory:");
  try {
    return String(database.prepare("select sqlite_version()").pluck().get());
  } finally {
    database.close();
  }
}

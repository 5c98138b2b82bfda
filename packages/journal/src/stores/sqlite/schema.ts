import type { Database } from "better-sqlite3";
import { JournalError } from "../../errors.js";
import { type Migration, migrations } from "./migrations.js";

/** "OSBJ": marks a file as a journal, so that no other program's database is taken for an empty one. */
const applicationId = 0x4f53424a;

/** Throws if this file is not for us to use: a newer schema, or somebody else's database. Changes nothing. */
export function checkSchema(database: Database, path: string): void {
  const version = numberOf(database, "user_version");
  const application = numberOf(database, "application_id");
  if (application === applicationId && version > migrations.length) {
    throw new JournalError(
      "schema-newer",
      `${path} has schema ${version}, written by a newer Osbert; this one knows schemas up to ${migrations.length}. Nothing was changed: use the newer Osbert, or a copy of the file from before`,
    );
  }
  if (application !== applicationId && (version !== 0 || application !== 0 || hasTables(database))) {
    throw new JournalError(
      "schema-missing",
      `${path} is a SQLite database, but not a journal of Osbert. Nothing was changed: give the journal a file of its own`,
    );
  }
}

/** Brings the schema up to date: all of what is missing, or nothing. */
export function migrate(database: Database, steps: readonly Migration[] = migrations): void {
  const version = numberOf(database, "user_version");
  if (version >= steps.length) return;
  database
    .transaction(() => {
      for (const step of steps.slice(version)) database.exec(step.sql);
      database.pragma(`application_id = ${applicationId}`);
      // Last, though the transaction makes it all one: the number must never speak of what is not there.
      database.pragma(`user_version = ${steps.length}`);
    })
    .immediate();
}

function numberOf(database: Database, pragma: string): number {
  return database.pragma(pragma, { simple: true }) as number;
}

function hasTables(database: Database): boolean {
  return database.prepare("select 1 from sqlite_master limit 1").get() !== undefined;
}

import { JournalError } from "../../errors.js";
import type { PostgresPool } from "./driver.js";
import { migrations } from "./migrations.js";
import { numberAt } from "./rows.js";
import type { Schema } from "./schema.js";
import { Session } from "./session.js";

/**
 * Sees to it that the schema is the one that this Osbert needs, and answers nothing. With `mayMigrate` it makes it so;
 * processes that start together do that once. A newer schema is never touched.
 */
export async function migrate(
  pool: PostgresPool,
  schema: Schema,
  mayMigrate: boolean,
  timeoutMs: number,
): Promise<void> {
  const session = await Session.open(pool, timeoutMs);
  try {
    await checkEncoding(session);
    // The usual case comes first and takes no lock, and needs no right to create anything.
    if ((await versionOf(session, schema)) === migrations.length) return;
    if (!mayMigrate) throw missing(schema);
    // The lock is the session's and ends with it.
    await session.script(`select pg_advisory_lock(hashtextextended('${schema.quoted}.migration', 0))`);
    await createMigrationTable(session, schema);
    for (let version = (await versionOf(session, schema)) + 1; version <= migrations.length; version++) {
      await session.script(scriptOf(schema, version));
    }
  } finally {
    await session.end();
  }
}

async function versionOf(session: Session, schema: Schema): Promise<number> {
  const [found] = await session.script(`select to_regclass('${schema.migration}') is not null`);
  if (found?.[0] !== "t") return 0;
  const [row] = await session.script(`select coalesce(max(version), 0) from ${schema.migration}`);
  const version = numberAt(row, 0);
  if (version > migrations.length) {
    throw new JournalError(
      "schema-newer",
      `the schema ${schema.quoted} is at version ${version}, and this Osbert knows versions up to ${migrations.length}: it was written by a newer Osbert. Nothing was changed; use that one, or restore a backup from before it`,
    );
  }
  return version;
}

/** `create schema if not exists` asks for the right to create one even where it exists. */
async function createMigrationTable(session: Session, schema: Schema): Promise<void> {
  const [found] = await session.script(`select to_regnamespace('${schema.quoted}') is not null`);
  if (found?.[0] !== "t") await session.script(`create schema ${schema.quoted}`);
  await session.script(`
    create table if not exists ${schema.migration} (
      version integer not null,
      name text not null,
      at timestamptz not null default now(),
      constraint migration_pkey primary key (version)
    )`);
}

function scriptOf(schema: Schema, version: number): string {
  const migration = migrations[version - 1];
  if (migration === undefined) throw new RangeError(`there is no migration ${version}`);
  const name = migration.name.replaceAll("'", "''");
  return `
    begin;
    ${migration.sql(schema)};
    insert into ${schema.migration} (version, name) values (${version}, '${name}');
    commit`;
}

function missing(schema: Schema): JournalError {
  return new JournalError(
    "schema-missing",
    `the schema ${schema.quoted} is missing or older than this Osbert needs (version ${migrations.length}): run \`osbert migrate\`, or open the store with migrate: true`,
  );
}

/** Any other encoding would refuse some texts, or keep bytes that it takes for others. */
async function checkEncoding(session: Session): Promise<void> {
  const [row] = await session.script("show server_encoding");
  if (row?.[0] !== "UTF8") throw new Error(`the database must have the encoding UTF8, not ${row?.[0]}`);
}

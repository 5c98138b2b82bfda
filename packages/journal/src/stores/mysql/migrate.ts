import { JournalError } from "../../errors.js";
import { isDuplicateIndex, isNoSuchTable, unavailable } from "./failure.js";
import { lockName, quoted } from "./lock-name.js";
import { migrations, migrationTable, newestMigration } from "./migrations.js";
import type { Session } from "./session.js";
import type { Sessions } from "./sessions.js";
import { bytes, int, serverNow } from "./sql.js";
import type { Tables } from "./tables.js";

/** How long to wait for another process that migrates; under the time that a statement has to answer. */
const waitS = 20;

/** Brings the schema up to this Osbert's. Of processes that start at once one does it, and the others wait. */
export async function migrate(sessions: Sessions, tables: Tables, database: string): Promise<void> {
  await sessions.use(async (session) => {
    // Most starts find nothing to do, and need no lock for that.
    if ((await schemaOf(session, tables)) === newestMigration) return;
    const lock = quoted(lockName("migrate", database, tables.prefix));
    const [row] = await session.rows(`select get_lock(${lock}, ${waitS}) as got`);
    if (Number(row?.got) !== 1) throw unavailable("another process migrates the schema still");
    try {
      await catchUp(session, tables);
      await session.rows(`select release_lock(${lock})`);
    } catch (error) {
      // The lock must not stay with a connection that goes back to the pool.
      session.end();
      throw error;
    }
  });
}

/** Throws unless the schema is this Osbert's. */
export async function checkSchema(sessions: Sessions, tables: Tables): Promise<void> {
  await sessions.use(async (session) => {
    const schema = await schemaOf(session, tables);
    if (schema === newestMigration) return;
    throw new JournalError(
      "schema-missing",
      schema === 0
        ? `there are no tables ${tables.prefix}… in the database yet; run "osbert migrate"`
        : `the tables ${tables.prefix}… are at schema ${schema}, this Osbert needs ${newestMigration}; run "osbert migrate"`,
    );
  });
}

async function catchUp(session: Session, tables: Tables): Promise<void> {
  const schema = await schemaOf(session, tables);
  await session.script(migrationTable(tables));
  for (const { id, name, statements } of migrations.filter((migration) => migration.id > schema)) {
    for (const statement of statements(tables)) {
      await session.script(statement).catch((error: unknown) => {
        if (!isDuplicateIndex(error)) throw error;
      });
    }
    // Last, so that a crash before it repeats the migration.
    await session.change(
      `insert into ${tables.migration} (id, name, at) values (${int(id)}, ${bytes(name)}, ${serverNow})`,
    );
  }
}

/** The newest migration that was done; 0 if none was. Throws `schema-newer` for one that this Osbert does not know. */
async function schemaOf(session: Session, { migration, prefix }: Tables): Promise<number> {
  const schema = await newestDone(session, migration);
  if (schema <= newestMigration) return schema;
  throw new JournalError(
    "schema-newer",
    `the tables ${prefix}… are at schema ${schema}, this Osbert knows ${newestMigration}; start the Osbert that wrote them, or a newer one`,
  );
}

async function newestDone(session: Session, migration: string): Promise<number> {
  try {
    const [row] = await session.rows(`select coalesce(max(id), 0) as newest from ${migration}`);
    return Number(row?.newest);
  } catch (error) {
    if (isNoSuchTable(error)) return 0;
    throw error;
  }
}

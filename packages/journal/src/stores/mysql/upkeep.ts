import { type Expected, setAsideLabel } from "../../store.js";
import type { Row, Session } from "./session.js";
import type { Sessions } from "./sessions.js";
import { bytes, dueAtSql, int } from "./sql.js";
import type { Tables } from "./tables.js";

/** Removes a resource with all that belongs to it, if it is still as expected. */
export async function remove(sessions: Sessions, tables: Tables, key: string, expected: Expected): Promise<boolean> {
  return sessions.transaction(async (session) => {
    const row = await lock(session, tables, key);
    if (row === undefined || Number(row.seq) !== expected.seq || Number(row.epoch) !== expected.epoch) return false;
    const id = int(Number(row.id));
    for (const table of [tables.entry, tables.part, tables.label]) {
      await session.change(`delete from ${table} where resource = ${id}`);
    }
    await session.change(`delete from ${tables.resource} where id = ${id}`);
    return true;
  });
}

/** Takes a resource out of the way, with a label that says so. */
export async function setAside(sessions: Sessions, tables: Tables, key: string): Promise<void> {
  await sessions.transaction(async (session) => {
    const row = await lock(session, tables, key);
    if (row === undefined) return;
    const id = int(Number(row.id));
    await session.change(
      `update ${tables.resource} set due_at = ${dueAtSql(null)}, lease_owner = null, lease_until = null, epoch = epoch + 1 where id = ${id}`,
    );
    await session.change(`insert into ${tables.label} (resource, name, value, \`key\`)
      values (${id}, ${bytes(setAsideLabel.name)}, ${bytes(setAsideLabel.value)}, ${bytes(key)})
      on duplicate key update \`key\` = values(\`key\`)`);
  });
}

/** `now` is the store's clock in SQL. */
export async function restore(sessions: Sessions, tables: Tables, now: string, key: string): Promise<void> {
  await sessions.transaction(async (session) => {
    const row = await lock(session, tables, key);
    if (row === undefined) return;
    const id = int(Number(row.id));
    if ((await removeLabel(session, tables, id)) === 0) return;
    await session.change(`update ${tables.resource} set due_at = ${now} where id = ${id}`);
  });
}

/** The row of a resource, locked until the transaction ends. */
export async function lock(session: Session, { resource }: Tables, key: string): Promise<Row | undefined> {
  const rows = await session.rows(
    `select id, seq, epoch from ${resource} force index (by_key) where \`key\` = ${bytes(key)} for update`,
  );
  return rows[0];
}

function removeLabel(session: Session, { label }: Tables, id: string): Promise<number> {
  return session.change(`delete from ${label} where resource = ${id} and name = ${bytes(setAsideLabel.name)}`);
}

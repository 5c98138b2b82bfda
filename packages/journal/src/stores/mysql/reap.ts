import { lostToOthers } from "./failure.js";
import { quoted } from "./lock-name.js";
import { thisServer } from "./presence.js";
import { textOf } from "./rows.js";
import type { Session } from "./session.js";
import type { Sessions } from "./sessions.js";
import { bytes, int, listOf } from "./sql.js";
import type { Tables } from "./tables.js";

/** Rows of owners that another server knew: nobody can tell whether they live, but by then their leases have run out. */
const forgottenAfterMs = 3_600_000;

/** How often to free the leases of an owner if others lock them at the same time. */
const mostAttempts = 10;

/**
 * J11: an owner is dead if its lock can be taken. So is one that has leases and no row: owners are written down before their first
 * lease, so it was buried, or has left, while a commit of it was under way. `now` is the store's clock in SQL. Answers how many leases
 * were freed.
 */
export async function reap(sessions: Sessions, tables: Tables, now: string): Promise<number> {
  return sessions.use(async (session) => {
    const rows = await session.rows(`select name, lock_name, server = ${thisServer} as here from ${tables.owner}
      where if(server = ${thisServer}, is_free_lock(lock_name) = 1, seen_at < ${now} - ${int(forgottenAfterMs)})`);
    let freed = 0;
    for (const row of rows) {
      const name = textOf(row.name);
      if (Number(row.here) === 1) freed += await bury(session, tables, now, name, textOf(row.lock_name));
      else await forget(session, tables, name);
    }
    for (const name of await unknown(session, tables)) freed += await free(session, tables, now, name);
    return freed;
  });
}

/** As `reap` tells it, and nothing is done about it. Of an owner that another server knows nobody can tell. */
export async function gone(
  sessions: Sessions,
  { owner }: Tables,
  owners: readonly string[],
): Promise<readonly string[]> {
  if (owners.length === 0) return [];
  const rows = await sessions.use((session) =>
    session.rows(`select name, if(server = ${thisServer}, is_free_lock(lock_name) = 1, 0) as is_gone from ${owner}
      where name in ${listOf(owners, bytes)}`),
  );
  const living = new Set(rows.filter((row) => Number(row.is_gone) !== 1).map((row) => textOf(row.name)));
  return owners.filter((name) => !living.has(name));
}

/** Goes from owner to owner over the index of leases, not from lease to lease. Leases are read first: their owners came before them. */
async function unknown(session: Session, { resource, owner }: Tables): Promise<readonly string[]> {
  const leasers = await session.rows(
    `select distinct lease_owner from ${resource} force index (by_owner) where lease_owner > ''`,
  );
  const names = leasers.map((row) => textOf(row.lease_owner));
  if (names.length === 0) return [];
  const rows = await session.rows(`select name from ${owner} where name in ${listOf(names, bytes)}`);
  const known = new Set(rows.map((row) => textOf(row.name)));
  return names.filter((name) => !known.has(name));
}

/** Under the lock of the dead: so no other process does the same, and the owner cannot come back in the middle. */
async function bury(session: Session, tables: Tables, now: string, name: string, lock: string): Promise<number> {
  const [row] = await session.rows(`select get_lock(${quoted(lock)}, 0) as got`);
  if (Number(row?.got) !== 1) return 0;
  try {
    const freed = await free(session, tables, now, name);
    await forget(session, tables, name);
    await session.rows(`select release_lock(${quoted(lock)})`);
    return freed;
  } catch (error) {
    // The lock must not stay with a connection that goes back to the pool.
    session.end();
    throw error;
  }
}

async function free(session: Session, { resource }: Tables, now: string, owner: string): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await session.change(`update ${resource} force index (by_owner) set
        epoch = epoch + 1, lease_owner = null, lease_until = null, due_at = ${now} where lease_owner = ${bytes(owner)}`);
    } catch (error) {
      if (!lostToOthers(error) || attempt >= mostAttempts) throw error;
    }
  }
}

async function forget(session: Session, { owner }: Tables, name: string): Promise<void> {
  await session.change(`delete from ${owner} where name = ${bytes(name)}`);
}

import type { Held, HeldPage, Release } from "../../store.js";
import { textOf } from "./rows.js";
import type { Row, Session } from "./session.js";
import type { Sessions } from "./sessions.js";
import { bytes, chunks, dueAtSql, int, limitOf, listOf } from "./sql.js";
import type { Tables } from "./tables.js";

/** Leases of one transaction. */
const mostLeases = 200;

/** Prolongs leases; `now` is the store's clock in SQL. Answers the keys that are still held. */
export async function renew(
  sessions: Sessions,
  { resource }: Tables,
  now: string,
  owner: string,
  held: readonly Held[],
  leaseMs: number,
): Promise<readonly string[]> {
  const kept = new Set<string>();
  for (const some of chunks(held, mostLeases)) {
    const keys = await sessions.transaction(async (session) => {
      const rows = await lockHeld(session, resource, owner, some);
      if (rows.length > 0) {
        // Assignments are made from left to right: the due time is compared with the lease as it was.
        await session.change(`update ${resource} set
          due_at = if(due_at = lease_until, ${now} + ${int(leaseMs)}, due_at), lease_until = ${now} + ${int(leaseMs)}
          where id in ${listOf(rows, idOf)}`);
      }
      return rows.map((row) => textOf(row.key));
    });
    for (const key of keys) kept.add(key);
  }
  return held.map(({ key }) => key).filter((key) => kept.has(key));
}

/** Keys that the owner has a lease on, by key. All of them are put in order: as many as a process can run. */
export async function heldBy(
  sessions: Sessions,
  { resource }: Tables,
  owner: string,
  { after, limit }: HeldPage,
): Promise<readonly string[]> {
  const sql = `select \`key\` from ${resource} force index (by_owner)
    where lease_owner = ${bytes(owner)} and \`key\` > ${bytes(after ?? "")} order by \`key\` limit ${limitOf(limit)}`;
  return (await sessions.use((session) => session.rows(sql))).map((row) => textOf(row.key));
}

/** Gives leases back that did not move on. */
export async function release(
  sessions: Sessions,
  { resource }: Tables,
  now: string,
  owner: string,
  held: readonly Release[],
): Promise<void> {
  for (const some of chunks(held, mostLeases)) {
    const wanted = new Map(some.map((each) => [each.key, each]));
    await sessions.transaction(async (session) => {
      const rows = (await lockHeld(session, resource, owner, some)).filter(
        (row) => Number(row.seq) === wanted.get(textOf(row.key))?.seq,
      );
      if (rows.length === 0) return;
      const dueAt = rows.map((row) => `when ${idOf(row)} then ${releasedTo(wanted.get(textOf(row.key)), now)}`);
      await session.change(`update ${resource} set
        epoch = epoch + 1, lease_owner = null, lease_until = null, due_at = case id ${dueAt.join(" ")} else due_at end
        where id in ${listOf(rows, idOf)}`);
    });
  }
}

/** Locked in the order of keys, as commits do. */
async function lockHeld(
  session: Session,
  resource: string,
  owner: string,
  held: readonly Held[],
): Promise<readonly Row[]> {
  const epochs = new Map(held.map(({ key, epoch }) => [key, epoch]));
  const rows = await session.rows(`select id, \`key\`, seq, epoch from ${resource} force index (by_key)
    where \`key\` in ${listOf([...epochs.keys()], bytes)} and lease_owner = ${bytes(owner)} order by \`key\` for update`);
  return rows.filter((row) => Number(row.epoch) === epochs.get(textOf(row.key)));
}

function idOf(row: Row): string {
  return int(Number(row.id));
}

function releasedTo(release: Release | undefined, now: string): string {
  if (release === undefined || release.dueAt === "now") return now;
  return dueAtSql(release.dueAt);
}

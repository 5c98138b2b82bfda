import type { ClaimAnswer, ClaimRequest, StoredRecord } from "../../store.js";
import { type OpenLane, sharesOf } from "./lane-shares.js";
import { recordColumns, recordOf, textOf } from "./rows.js";
import type { Row, Session } from "./session.js";
import type { Sessions } from "./sessions.js";
import { bytes, chunks, dueAtSql, int, limitOf, listOf, never, serverNow } from "./sql.js";
import type { Tables } from "./tables.js";

/** Lanes of one statement. */
const mostLanes = 50;

/**
 * First the earliest due time of every lane, which is all if nothing is due; then, for lanes with room, what comes next and how the
 * limit is shared out; then the claim itself. Each looks at the head of a lane's index range only (J10).
 */
export async function claim(
  sessions: Sessions,
  tables: Tables,
  clock: (() => number) | undefined,
  request: ClaimRequest,
): Promise<ClaimAnswer> {
  const heads = await headsOfLanes(sessions, tables);
  const now = clock?.() ?? heads.now;
  const open = heads.lanes
    .map(({ lane, dueAt }) => ({ lane, dueAt, room: request.rooms.get(lane) ?? request.laneRoom }))
    .filter(({ room, dueAt }) => room > 0 && dueAt !== never);
  const due = open.filter(({ dueAt }) => dueAt <= now);
  const later = open.filter(({ dueAt }) => dueAt > now).map(({ dueAt }) => dueAt);

  const { shares, next } = await lookInto(sessions, tables, due, now, request);
  const claimed = shares.length === 0 ? [] : await take(sessions, tables, shares, now, request);
  const nextDueAt = Math.min(...later, ...next);
  return { now, claimed, nextDueAt: Number.isFinite(nextDueAt) ? nextDueAt : null };
}

interface Heads {
  readonly now: number;
  readonly lanes: readonly { readonly lane: string; readonly dueAt: number }[];
}

async function headsOfLanes(sessions: Sessions, { lane, resource }: Tables): Promise<Heads> {
  // The time comes as a row of its own, so that it comes even if there are no lanes.
  const rows = await sessions.use((session) =>
    session.rows(`select ${serverNow} as due_at, null as lane union all
      select (select r.due_at from ${resource} r force index (by_due) where r.lane = l.lane order by r.due_at limit 1), l.lane
      from ${lane} l`),
  );
  const lanes = rows.filter((row) => row.lane !== null && row.due_at !== null);
  return {
    now: Number(rows.find((row) => row.lane === null)?.due_at),
    lanes: lanes.map((row) => ({ lane: textOf(row.lane), dueAt: Number(row.due_at) })),
  };
}

interface Look {
  readonly shares: readonly OpenLane[];
  readonly next: readonly number[];
}

/**
 * What comes after now in each lane, and where that begins which can be claimed; if the rooms together are more than the limit, also
 * which of it is earliest.
 */
async function lookInto(
  sessions: Sessions,
  { resource }: Tables,
  lanes: readonly OpenLane[],
  now: number,
  { owner, limit }: ClaimRequest,
): Promise<Look> {
  const crowded = lanes.length > 1 && lanes.reduce((sum, { room }) => sum + room, 0) > limit;
  const rows: Row[] = [];
  for (const some of chunks(lanes, mostLanes)) {
    const branches = some.flatMap((open) => {
      const from = `select lane, due_at from ${resource} force index (by_due) where lane = ${bytes(open.lane)}`;
      const after = `(${from} and due_at > ${int(now)} and due_at < ${dueAtSql(null)} order by due_at limit 1)`;
      const most = crowded ? Math.min(open.room, limit) : 1;
      return [after, `(${from} and ${claimable(owner, open, now)} order by due_at limit ${limitOf(most)})`];
    });
    rows.push(...(await sessions.use((session) => session.rows(branches.join(" union all ")))));
  }
  const seen = rows.map((row) => ({ lane: textOf(row.lane), dueAt: Number(row.due_at) }));
  const next = seen.filter(({ dueAt }) => dueAt > now).map(({ dueAt }) => dueAt);
  if (limit < 1) return { shares: [], next };
  const candidates = seen.filter(({ dueAt }) => dueAt <= now);
  const first = new Map<string, number>();
  for (const { lane, dueAt } of candidates) first.set(lane, Math.min(dueAt, first.get(lane) ?? dueAt));
  const free = lanes.flatMap((open) => {
    const dueAt = first.get(open.lane);
    return dueAt === undefined ? [] : [{ ...open, dueAt }];
  });
  return { shares: crowded ? sharesOf(free, candidates, limit) : free, next };
}

/** Rows that another claim has locked are its own already: they are skipped, and nobody waits. */
async function take(
  sessions: Sessions,
  { resource }: Tables,
  shares: readonly OpenLane[],
  now: number,
  { owner, leaseMs, limit }: ClaimRequest,
): Promise<readonly StoredRecord[]> {
  const until = now + leaseMs;
  const branches = shares.map(
    (open) => `(select r.id, ${recordColumns("r")} from ${resource} r force index (by_due)
      where lane = ${bytes(open.lane)} and ${claimable(owner, open, now)}
      order by due_at limit ${limitOf(Math.min(open.room, limit))}
      for update skip locked)`,
  );
  return sessions.transaction(async (session) => {
    const rows: Row[] = [];
    for (const some of chunks(branches, mostLanes)) rows.push(...(await session.rows(some.join(" union all "))));
    rows.sort((a, b) => Number(a.due_at) - Number(b.due_at));
    await lease(session, resource, rows, owner, now, until);
    return rows.map((row) => {
      const record = recordOf(row);
      const running = record.lease?.owner === owner && record.lease.until > now;
      return { ...record, epoch: running ? record.epoch : record.epoch + 1, dueAt: until, lease: { owner, until } };
    });
  });
}

async function lease(
  session: Session,
  resource: string,
  rows: readonly Row[],
  owner: string,
  now: number,
  until: number,
): Promise<void> {
  for (const some of chunks(rows, 500)) {
    // Assignments are made from left to right: the epoch is told by the lease as it was.
    await session.change(`update ${resource} set
      epoch = epoch + if(lease_owner = ${bytes(owner)} and lease_until > ${int(now)}, 0, 1),
      lease_owner = ${bytes(owner)}, lease_until = ${int(until)}, due_at = ${int(until)}
      where id in ${listOf(some, (row) => int(Number(row.id)))}`);
  }
}

/**
 * Due, and not run by another. Begins at the earliest due time that was just read: before it the index is full of what is not due any
 * more, as long as somebody holds an old snapshot (a backup) and the server cannot clear it away. A plain read passes over thousands of
 * those in a millisecond; a read that locks looks each of them up.
 */
function claimable(owner: string, { dueAt }: OpenLane, now: number): string {
  return `due_at between ${int(dueAt)} and ${int(now)} and (lease_until is null or lease_until <= ${int(now)} or lease_owner = ${bytes(owner)})`;
}

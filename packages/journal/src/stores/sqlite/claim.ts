import type { ClaimAnswer, ClaimRequest, StoredRecord } from "../../store.js";
import type { Connection } from "./connection.js";
import { type Row, recordColumns, recordOf } from "./rows.js";

/**
 * Every one of these is one short walk along the index of what is due, which they name so that SQLite refuses to do
 * anything else.
 */
export const claimSql = {
  /** The next lane in which something is due at any time: lanes are skipped through, their rows are not read. */
  lane: "select lane from resource indexed by resource_due where due_at is not null and lane >= ? order by lane limit 1",
  due: `select id, due_at, epoch, lease_owner, lease_until from resource indexed by resource_due
        where lane = ? and due_at <= ? and (lease_owner is null or lease_until <= ? or lease_owner = ?)
        order by due_at limit ?`,
  next: "select due_at from resource indexed by resource_due where lane = ? and due_at > ? order by due_at limit 1",
  record: `select ${recordColumns} from resource where id = ?`,
  take: "update resource set epoch = ?, due_at = ?, lease_owner = ?, lease_until = ? where id = ?",
} as const;

type DueRow = readonly [id: number, dueAt: number, epoch: number, owner: string | null, until: number | null];

/** Claims, inside the writer's transaction. */
export class Claimer {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: Connection) {
    this.#statements = prepare(database);
  }

  claim(request: ClaimRequest, now: number): ClaimAnswer {
    const { due, next } = this.#statements;
    const { owner, limit, leaseMs } = request;
    const found: DueRow[] = [];
    let nextDueAt: number | null = null;
    for (const lane of this.#lanes()) {
      const room = request.rooms.get(lane) ?? request.laneRoom;
      if (room <= 0) continue;
      for (const row of due.all(lane, now, now, owner, wholeOf(Math.min(room, limit)))) found.push(row as DueRow);
      // Before anything is claimed: the ends of the leases that this claim gives out are the engine's own business.
      const later = next.get(lane, now) as readonly [number] | undefined;
      if (later !== undefined && (nextDueAt === null || later[0] < nextDueAt)) nextDueAt = later[0];
    }
    // Each lane gave its earliest, as many as it has room for: the earliest of all of them are the earliest there are.
    found.sort(([, a], [, b]) => a - b);
    const claimed = found.slice(0, limit).map((row) => this.#take(row, owner, now, now + leaseMs));
    return { now, claimed, nextDueAt };
  }

  *#lanes(): Generator<string> {
    const { lane } = this.#statements;
    for (let from = ""; ; ) {
      const found = lane.get(from) as readonly [string] | undefined;
      if (found === undefined) return;
      yield found[0];
      from = `${found[0]}\u0000`;
    }
  }

  #take([id, , epoch, holder, holdsUntil]: DueRow, owner: string, now: number, until: number): StoredRecord {
    const { record, take } = this.#statements;
    const isMine = holder === owner && holdsUntil !== null && holdsUntil > now;
    take.run(isMine ? epoch : epoch + 1, until, owner, until, id);
    return recordOf(record.get(id) as Row);
  }
}

/** SQLite takes no infinity, and would take a negative limit for none. */
function wholeOf(limit: number): number {
  return Math.max(0, Math.min(limit, Number.MAX_SAFE_INTEGER));
}

function prepare(database: Connection) {
  return {
    lane: database.prepare(claimSql.lane).raw(),
    due: database.prepare(claimSql.due).raw(),
    next: database.prepare(claimSql.next).raw(),
    record: database.prepare(claimSql.record).raw(),
    take: database.prepare(claimSql.take),
  };
}

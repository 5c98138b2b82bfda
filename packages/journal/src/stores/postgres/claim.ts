import type { ClaimAnswer, ClaimRequest } from "../../store.js";
import { clock } from "./clock.js";
import { packNumbers, packTexts, text, texts } from "./columns.js";
import { type CrowdedWalk, crowdedEntries, type Floors } from "./due-floors.js";
import { lookup } from "./lookup.js";
import { numberAt, optionalNumberAt, recordColumns, recordOf } from "./rows.js";
import type { Schema } from "./schema.js";
import type { Row, Statement, Value } from "./session.js";

/** What is due but locked by another transaction just now is looked at again so soon: such locks last for a commit. */
const lookAgainMs = 20;

/** Which of the two a claim is made with: see `DueFloors`. */
export interface ClaimStatements {
  /** Finds the lanes, and where each begins. */
  readonly fromStart: Statement;
  /** Is told lanes, and where to begin in them. */
  readonly fromFloors: Statement;
}

export function claimStatements(schema: Schema): ClaimStatements {
  const { resource, resourceDue } = schema;
  const entries = `pg_stat_get_xact_tuples_returned('${resourceDue}'::regclass)`;
  return {
    fromStart: {
      name: "osbert claim",
      text: statement(schema, {
        // The lanes wait for the count: what they read belongs to it.
        lanes: `
          before as materialized (select ${entries} as entries),
          lane(lane, first_due_at) as (
            (
              select r.lane, r.due_at from ${resource} as r
              where r.due_at is not null and (select entries from before) is not null order by r.lane, r.due_at limit 1
            )
            union all
            select next.lane, next.due_at
            from lane as l cross join lateral (
              select r.lane, r.due_at from ${resource} as r
              where r.due_at is not null and r.lane > l.lane order by r.lane, r.due_at limit 1
            ) as next
          )`,
        next: `
          select case when o.first_due_at > o.at then o.first_due_at else (
            select r.due_at from ${resource} as r where r.lane = o.lane and r.due_at > o.at order by r.due_at limit 1
          ) end
          from open_lane as o
          union all`,
        walk: `
          ${entries} - (select entries from before),
          case when ${entries} - (select entries from before) > ${crowdedEntries}
            then (select json_object_agg(lane.lane, lane.first_due_at) from lane) end`,
      }),
    },
    fromFloors: {
      name: "osbert claim from floors",
      text: statement(schema, {
        lanes: `lane(lane, first_due_at) as (
          select ${text("f.lane")}, f.due_at from unnest(${texts(9)}, $10::bigint[]) as f(lane, due_at)
        )`,
        next: "",
        walk: "null, null",
      }),
    },
  };
}

/**
 * One statement takes what is due and tells when to look again. Its cost depends on the number of lanes and on what it
 * takes, not on how much is due.
 *
 * lane: goes from lane to lane over the index, not from row to row, and finds where each begins. What was claimed
 * before leaves dead entries there until the next vacuum, and this is the only part that has to step over them; the next due
 * time has to step over those that are still to come. Where these are many, floors take its place.
 * due: takes the earliest of each lane that has room. Rows that others claim at this moment are passed over, so that
 * claimers never wait for each other. Where a row was changed while this statement ran, its newest version must still
 * be due and free.
 * claimed: reads the rows' newest versions, which are locked by now.
 * passed_over: a lane from which fewer rows could be locked than were there. They may be in the hands of a claimer that
 * has locked more than it takes, or of a commit, so nobody else might come for them.
 */
function statement(
  { resource }: Schema,
  { lanes, next, walk }: { readonly lanes: string; readonly next: string; readonly walk: string },
): string {
  const claimable = `
    r.lane = o.lane and r.due_at >= o.first_due_at and r.due_at <= o.at
    and (r.lease_owner is null or r.lease_until <= o.at or r.lease_owner = $3)`;
  return `
      with recursive clock as materialized (${clock(2)}),
      ${lanes},
      open_lane as materialized (
        select l.lane, l.first_due_at, clock.at, least(coalesce(given.room, $6::bigint), $5::bigint) as room
        from lane as l
        cross join clock
        left join unnest(${texts(7)}, $8::bigint[]) as given(lane, room) on ${text("given.lane")} = l.lane
        where coalesce(given.room, $6::bigint) > 0
      ),
      due as materialized (
        select o.lane, d.key, d.due_at
        from open_lane as o
        cross join lateral (
          select r.key, r.due_at from ${resource} as r where ${claimable} order by r.due_at limit o.room
          for no key update skip locked
        ) as d
      ),
      chosen as materialized (select key, due_at from due order by due_at limit $5::bigint),
      claimed as (
        update ${resource} as r
        set
          epoch = r.epoch + case when r.lease_owner = $3 and r.lease_until > clock.at then 0 else 1 end,
          lease_owner = $3, lease_until = clock.at + $4::bigint, due_at = clock.at + $4::bigint
        from chosen, clock
        where ${lookup("r.key", "chosen.key")}
        returning chosen.due_at as was_due_at, ${recordColumns("r")}
      ),
      passed_over as (
        select o.at + ${lookAgainMs} as due_at
        from open_lane as o
        where
          (select count(*) from (select from ${resource} as r where ${claimable} order by r.due_at limit o.room) as seen)
          > (select count(*) from due where due.lane = o.lane)
        limit 1
      ),
      next as (
        select min(due_at) as due_at
        from (
          ${next}
          select due_at from passed_over
        ) as candidate(due_at)
      )
      select clock.at, next.due_at, ${walk}, claimed.*
      from clock cross join next left join claimed on true
      order by claimed.was_due_at`;
}

export function claimQuery(
  { fromStart, fromFloors }: ClaimStatements,
  { owner, leaseMs, limit, laneRoom, rooms }: ClaimRequest,
  floors: Floors | undefined,
  now: number | null,
): { readonly statement: Statement; readonly values: Value[] } {
  const { separator, packed } = packTexts([[...rooms.keys()], [...(floors?.lanes.keys() ?? [])]]);
  const [roomLanes = "", floorLanes = ""] = packed;
  const values = [separator, now, owner, leaseMs, limit, laneRoom, roomLanes, packNumbers([...rooms.values()])];
  return floors === undefined
    ? { statement: fromStart, values }
    : { statement: fromFloors, values: [...values, floorLanes, packNumbers([...floors.lanes.values()])] };
}

export function claimAnswer(rows: readonly Row[], floors: Floors | undefined): ClaimAnswer {
  const now = numberAt(rows[0], 0);
  const found = optionalNumberAt(rows[0], 1);
  return {
    now,
    claimed: rows.filter((row) => row[5] !== null).map((row) => recordOf(row, 5)),
    nextDueAt: floors === undefined ? found : nextLook(now, found, floors),
  };
}

/** The walk from the start that is to come finds what these claims cannot see. */
function nextLook(now: number, found: number | null, { dueAts, forMs }: Floors): number {
  return Math.min(now + forMs, found ?? Number.POSITIVE_INFINITY, ...dueAts.filter((dueAt) => dueAt > now));
}

/** `undefined` unless the claim walked from the start, over many entries. */
export function crowdedWalk([row]: readonly Row[], { now, nextDueAt }: ClaimAnswer): CrowdedWalk | undefined {
  const lanes = row?.[3] ?? null;
  if (lanes === null) return undefined;
  return { at: now, entries: numberAt(row, 2), lanes: new Map(Object.entries(JSON.parse(lanes))), nextDueAt };
}

import type { ClaimAnswer, ClaimRequest } from "../../store.js";
import { clock } from "./clock.js";
import { packNumbers, packTexts, text, texts } from "./columns.js";
import { lookup } from "./lookup.js";
import { numberAt, optionalNumberAt, recordColumns, recordOf } from "./rows.js";
import type { Schema } from "./schema.js";
import type { Row, Statement, Value } from "./session.js";

/** What is due but locked by another transaction just now is looked at again so soon: such locks last for a commit. */
const lookAgainMs = 20;

/**
 * One statement takes what is due and tells when to look again. Its cost depends on the number of lanes and on what it
 * takes, not on how much is due.
 *
 * lane: goes from lane to lane over the index, not from row to row, and finds where each begins. What was claimed
 * before leaves dead entries there until the next vacuum, and this is the only part that has to step over them.
 * due: takes the earliest of each lane that has room. Rows that others claim at this moment are passed over, so that
 * claimers never wait for each other. Where a row was changed while this statement ran, its newest version must still
 * be due and free.
 * claimed: reads the rows' newest versions, which are locked by now.
 * passed_over: a lane from which fewer rows could be locked than were there. They may be in the hands of a claimer that
 * has locked more than it takes, or of a commit, so nobody else might come for them.
 */
export function claimStatement({ resource }: Schema): Statement {
  const claimable = `
    r.lane = o.lane and r.due_at >= o.first_due_at and r.due_at <= o.at
    and (r.lease_owner is null or r.lease_until <= o.at or r.lease_owner = $3)`;
  return {
    name: "osbert claim",
    text: `
      with recursive clock as materialized (${clock(2)}),
      lane(lane, first_due_at) as (
        (select r.lane, r.due_at from ${resource} as r where r.due_at is not null order by r.lane, r.due_at limit 1)
        union all
        select next.lane, next.due_at
        from lane as l cross join lateral (
          select r.lane, r.due_at from ${resource} as r
          where r.due_at is not null and r.lane > l.lane order by r.lane, r.due_at limit 1
        ) as next
      ),
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
          select case when o.first_due_at > o.at then o.first_due_at else (
            select r.due_at from ${resource} as r where r.lane = o.lane and r.due_at > o.at order by r.due_at limit 1
          ) end
          from open_lane as o
          union all
          select due_at from passed_over
        ) as candidate(due_at)
      )
      select clock.at, next.due_at, claimed.*
      from clock cross join next left join claimed on true
      order by claimed.was_due_at`,
  };
}

export function claimValues({ owner, leaseMs, limit, laneRoom, rooms }: ClaimRequest, now: number | null): Value[] {
  const { separator, packed } = packTexts([[...rooms.keys()]]);
  return [separator, now, owner, leaseMs, limit, laneRoom, packed[0] ?? "", packNumbers([...rooms.values()])];
}

export function claimAnswer(rows: readonly Row[]): ClaimAnswer {
  return {
    now: numberAt(rows[0], 0),
    claimed: rows.filter((row) => row[3] !== null).map((row) => recordOf(row, 3)),
    nextDueAt: optionalNumberAt(rows[0], 1),
  };
}

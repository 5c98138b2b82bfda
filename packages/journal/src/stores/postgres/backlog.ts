import type { BacklogRequest, LaneBacklog, StoredBacklog, StoredRecord } from "../../store.js";
import { clock } from "./clock.js";
import { numberAt, recordColumns, recordOf, textAt } from "./rows.js";
import type { Schema } from "./schema.js";
import type { Row, Statement, Value } from "./session.js";

/** What is open, counted, and the earliest of it. Both go from lane to lane over the index, as claims do, and stop at their limits. */
export interface BacklogStatements {
  readonly counts: Statement;
  readonly samples: Statement;
}

export function backlogStatements({ resource }: Schema): BacklogStatements {
  const lanes = `
    lane(lane) as (
      (select r.lane from ${resource} as r where r.due_at is not null and r.lane > '' order by r.lane, r.due_at limit 1)
      union all
      select next.lane
      from lane as l cross join lateral (
        select r.lane from ${resource} as r
        where r.due_at is not null and r.lane > l.lane order by r.lane, r.due_at limit 1
      ) as next
    )`;
  const counted = (rows: string) =>
    `(select count(*) from (select from ${resource} as r where ${rows} limit $2::bigint) as c)`;
  return {
    counts: {
      name: "osbert backlog counts",
      text: `
        with recursive clock as materialized (${clock(1)}), ${lanes}
        select
          clock.at, ${counted("r.lease_owner is not null order by r.lease_owner")}, l.lane,
          ${counted("r.lane = l.lane and r.due_at <= clock.at order by r.due_at")},
          ${counted("r.lane = l.lane and r.due_at > clock.at order by r.due_at")}
        from clock left join lane as l on true
        order by l.lane`,
    },
    samples: {
      name: "osbert backlog samples",
      text: `
        with recursive ${lanes}
        select ${recordColumns("s")}
        from lane as l cross join lateral (
          select * from ${resource} as r
          where r.lane = l.lane and r.due_at is not null order by r.due_at limit $1::bigint
        ) as s
        order by s.lane, s.due_at`,
    },
  };
}

export function countsValues({ limit }: BacklogRequest, now: number | null): Value[] {
  return [now, limit];
}

export function backlogOf(counts: readonly Row[], samples: readonly Row[]): StoredBacklog {
  const records = new Map<string, StoredRecord[]>();
  for (const row of samples) {
    const record = recordOf(row);
    const others = records.get(record.lane);
    if (others === undefined) records.set(record.lane, [record]);
    else others.push(record);
  }
  const lanes: LaneBacklog[] = counts.flatMap((row) => {
    if (row[2] === null) return [];
    const lane = textAt(row, 2);
    return [{ lane, due: numberAt(row, 3), later: numberAt(row, 4), sample: records.get(lane) ?? [] }];
  });
  return { now: numberAt(counts[0], 0), lanes, leased: numberAt(counts[0], 1) };
}

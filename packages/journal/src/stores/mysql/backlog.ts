import type { BacklogRequest, LaneBacklog, StoredBacklog, StoredRecord } from "../../store.js";
import { recordColumns, recordOf, textOf } from "./rows.js";
import type { Row } from "./session.js";
import type { Sessions } from "./sessions.js";
import { bytes, chunks, int, limitOf, never, serverNow } from "./sql.js";
import type { Tables } from "./tables.js";

/** Lanes of one statement. */
const mostLanes = 50;

/** What is open, counted, and the earliest of it, lane by lane. Each look begins at an index range and stops at its limit (J10). */
export async function backlog(
  sessions: Sessions,
  tables: Tables,
  clock: (() => number) | undefined,
  { limit, sample }: BacklogRequest,
): Promise<StoredBacklog> {
  const { resource, lane: laneTable } = tables;
  const rows = (sql: string): Promise<readonly Row[]> => sessions.use((session) => session.rows(sql));
  const counted = (index: string, where: string) =>
    `(select count(*) from (select 1 from ${resource} force index (${index}) where ${where} limit ${limitOf(limit)}) c)`;
  const [head] = await rows(`select ${serverNow} as now_ms, ${counted("by_owner", "lease_owner > x''")} as leased`);
  const now = clock?.() ?? Number(head?.now_ms);
  const known = (await rows(`select lane from ${laneTable} where lane > x'' order by lane`)).map(({ lane }) =>
    textOf(lane),
  );

  const lanes: LaneBacklog[] = [];
  for (const some of chunks(known, mostLanes)) {
    const counts = some.map((lane) => {
      const of = `lane = ${bytes(lane)} and due_at`;
      const due = counted("by_due", `${of} <= ${int(now)}`);
      const later = counted("by_due", `${of} > ${int(now)} and due_at < ${never}`);
      return `select ${bytes(lane)} as lane, ${due} as due, ${later} as later`;
    });
    const open = (await rows(counts.join(" union all ")))
      .map(({ lane, due, later }) => ({ lane: textOf(lane), due: Number(due), later: Number(later) }))
      .filter(({ due, later }) => due + later > 0);
    const samples = await samplesOf(open.map(({ lane }) => lane));
    for (const lane of open) lanes.push({ ...lane, sample: samples.filter((record) => record.lane === lane.lane) });
  }
  return { now, lanes, leased: Number(head?.leased) };

  async function samplesOf(lanesOpen: readonly string[]): Promise<readonly StoredRecord[]> {
    if (lanesOpen.length === 0) return [];
    const branches = lanesOpen.map(
      (lane) => `(select ${recordColumns("r")} from ${resource} r force index (by_due)
        where lane = ${bytes(lane)} and due_at < ${never} order by due_at limit ${limitOf(sample)})`,
    );
    const records = (await rows(branches.join(" union all "))).map(recordOf);
    return records.sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0));
  }
}

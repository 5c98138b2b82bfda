import { type ResourceState, stateOf } from "../state.js";
import type { LaneBacklog, StoredBacklog, StoredRecord } from "../store.js";

/** How much is open in all processes on a store. Its numbers are bounded, so that looking costs little however much there is. */
export interface Backlog {
  /** The store's time. */
  readonly at: number;
  readonly lanes: readonly LaneOfBacklog[];
  /** Resources that some process runs. */
  readonly running: number;
}

export interface LaneOfBacklog {
  readonly lane: string;
  /** Resources with open operations that will be looked at some time. Held ones without a deadline are not among them. */
  readonly open: number;
  /** Those of them that are due: nobody has begun with them yet. */
  readonly due: number;
  /** Whether all of them were looked into for what follows. */
  readonly complete: boolean;
  /** When the oldest open operation was accepted. */
  readonly oldestAcceptedAt: number | null;
  /** Open operations that failed so many times in a row, without recording a step in between. */
  readonly failing: number;
}

/** What a store has counted and sampled, put into words. Pure. */
export function backlogOf({ now, lanes, leased }: StoredBacklog, failures: number): Backlog {
  return { at: now, running: leased, lanes: lanes.map((lane) => laneOf(lane, failures)) };
}

function laneOf({ lane, due, later, sample }: LaneBacklog, failures: number): LaneOfBacklog {
  const operations = sample.flatMap((record) => readable(record)?.open ?? []);
  let oldestAcceptedAt: number | null = null;
  for (const { acceptedAt } of operations) oldestAcceptedAt = Math.min(oldestAcceptedAt ?? acceptedAt, acceptedAt);
  return {
    lane,
    open: due + later,
    due,
    complete: sample.length >= due + later,
    oldestAcceptedAt,
    failing: operations.filter((operation) => operation.failures >= failures).length,
  };
}

/** One that cannot be read is set aside by whoever claims it; it does not keep the others from being seen. */
function readable(record: StoredRecord): ResourceState | undefined {
  try {
    return stateOf(record);
  } catch {
    return undefined;
  }
}

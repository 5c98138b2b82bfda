import { defaultPace, type PollingPace } from "@osbert/protocol/client";

/** How long is waited for what. */
export interface Pauses {
  /** A broker that is busy, where it gives no advice. */
  readonly busy: GrowingPause;
  /** A broker that cannot be reached, or refuses the credentials. */
  readonly notSent: GrowingPause;
  /** An update whose answer was lost, before it is sent again. */
  readonly lost: GrowingPause;
  /** The same of a delete, which is sent for ever. */
  readonly deleting: GrowingPause;
  /** Before a delete that was accepted and has failed is tried again: so many times, and no more. */
  readonly failedDelete: readonly number[];
  /** From an attempt to create something of which nobody knows what it did to the next one, unless it is known to be undone before. */
  readonly recreateMs: number;
  /** For so long may something come into being after it was deleted, because its answer to the create was lost: until then it is deleted again. */
  readonly lateMs: number;
  /** For so long, at most, a change waits for its broker until that takes the first call. Deletes have no such end. */
  readonly deadlineMs: number;
  readonly polling: PollingPace;
}

export interface GrowingPause {
  readonly firstMs: number;
  readonly longestMs: number;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

export const defaultPauses: Pauses = {
  busy: { firstMs: 10_000, longestMs: 5 * minuteMs },
  notSent: { firstMs: 1_000, longestMs: 10 * minuteMs },
  lost: { firstMs: 10_000, longestMs: 5 * minuteMs },
  deleting: { firstMs: minuteMs, longestMs: dayMs },
  failedDelete: [10 * minuteMs, 2 * hourMs, 20 * hourMs],
  recreateMs: 10 * minuteMs,
  // Nobody waits for it, and a broker that makes a database before it answers takes longer than any of its callers wait.
  lateMs: hourMs,
  deadlineMs: 7 * dayMs,
  polling: defaultPace,
};

/** Twice as long each time; what began together must not ask together, so a fifth of it is chance. */
export function growingPauseMs({ firstMs, longestMs }: GrowingPause, times: number, random: () => number): number {
  return Math.min(longestMs, firstMs * 2 ** Math.min(times, 40)) * (0.8 + 0.4 * random());
}

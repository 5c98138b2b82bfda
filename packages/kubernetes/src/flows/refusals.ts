import type { Refusals } from "./flow-record.js";

const firstPauseMs = 1_000;
const mostPauseMs = 60_000;

export function refusedAgain(before: Refusals | null, message: string, now: number): Refusals {
  return { times: (before?.times ?? 0) + 1, since: before?.since ?? now, lastAt: now, message };
}

/** When what was refused is tried again. A clock that was set back does not make it wait for longer. */
export function retryAt({ times, lastAt }: Refusals, now: number): number {
  return Math.min(lastAt, now) + Math.min(mostPauseMs, firstPauseMs * 2 ** Math.min(20, times - 1));
}

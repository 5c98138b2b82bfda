import type { Refusals } from "./flow-record.js";

const firstPauseMs = 1_000;
const mostPauseMs = 60_000;

export function refusedAgain(before: Refusals | null, message: string, now: number): Refusals {
  return { times: (before?.times ?? 0) + 1, since: before?.since ?? now, lastAt: now, message };
}

/**
 * Whether one more refusal tells nothing new: it says what the one before said, and that has been said for long enough to whoever has asked last, at
 * `wordAt`, to be believed.
 */
export function isOldRefusal(before: Refusals | null, message: string, wordAt: number, refusedMs: number): boolean {
  if (before === null || before.message !== message) return false;
  return before.lastAt - Math.max(before.since, wordAt) >= refusedMs;
}

/** When what was refused is tried again. A clock that was set back does not make it wait for longer. */
export function retryAt({ times, lastAt }: Refusals, now: number): number {
  return Math.min(lastAt, now) + Math.min(mostPauseMs, firstPauseMs * 2 ** Math.min(20, times - 1));
}

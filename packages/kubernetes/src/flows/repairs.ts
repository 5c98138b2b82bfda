import type { Repairs } from "./flow-record.js";

const mostRepairMs = 3_600_000;

/** When what has been broken since then is made anew: less and less often. A clock that was set back does not make it wait for longer. */
export function repairAt(repairs: Repairs | null, brokenSince: number, firstMs: number, now: number): number {
  const from = Math.min(now, Math.max(brokenSince, repairs?.lastAt ?? 0));
  return from + Math.min(mostRepairMs, firstMs * 2 ** Math.min(20, repairs?.times ?? 0));
}

export function repairedAgain(before: Repairs | null, now: number): Repairs {
  return { times: (before?.times ?? 0) + 1, lastAt: now };
}

import { PlatformError } from "../errors.js";
import type { CampaignData, CampaignWindow, StartCampaign, TargetState } from "../records/campaign-record.js";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/** 0: it is open now. */
export function untilOpenMs(window: CampaignWindow | null, now: number): number {
  if (window === null) return 0;
  const at = now % dayMs;
  const [from, until] = [window.fromMinute * minuteMs, window.untilMinute * minuteMs];
  const isOpen = from < until ? at >= from && at < until : at >= from || at < until;
  return isOpen ? 0 : (from - at + dayMs) % dayMs;
}

/** So many must have ended before their rate says something; or so many failed one after the other. */
const leastEnded = 10;
const failedInARow = 3;

/** Why it is to stop; `null`: it goes on. */
export function reasonToStop({ counts, failedInARow: row, stopAtErrorRate }: CampaignData): string | null {
  const ended = counts.succeeded + counts.failed;
  if (ended < leastEnded && row < failedInARow) return null;
  return counts.failed > ended * stopAtErrorRate ? `${counts.failed} of ${ended} upgrades failed` : null;
}

/** One instance from one state to another. */
export interface TargetMove {
  readonly from: TargetState | null;
  readonly to: TargetState;
}

export function afterMoves(data: CampaignData, moves: readonly TargetMove[]): CampaignData {
  const counts = { ...data.counts };
  let row = data.failedInARow;
  for (const { from, to } of moves) {
    if (from !== null) counts[from]--;
    counts[to]++;
    if (to === "failed") row++;
    else if (to === "succeeded") row = 0;
  }
  return { ...data, counts, failedInARow: row };
}

const soonestLookMs = 1_000;

/** When a campaign looks at its instances again: the later, the longer none of them has moved, and after a minute at the latest. */
export function lookAgainMs({ movedAt, startedAt }: Pick<CampaignData, "movedAt" | "startedAt">, now: number): number {
  return Math.min(minuteMs, Math.max(soonestLookMs, Math.round((now - (movedAt ?? startedAt)) / 10)));
}

/** How many upgrades may begin now. */
export function roomFor({ state, atOnce, window }: CampaignData, running: number, now: number): number {
  return state === "running" && untilOpenMs(window, now) === 0 ? Math.max(0, atOnce - running) : 0;
}

export function newCampaign(
  id: string,
  wanted: StartCampaign,
  by: string,
  identity: CampaignData["identity"],
  now: number,
): CampaignData {
  const { broker, offering = null, plan = null, space = null, window = null } = wanted;
  const { atOnce = 5, stopAtErrorRate = 0.2 } = wanted;
  for (const [what, text] of Object.entries({ offering, plan, space }))
    if (text !== null && (typeof text !== "string" || text === "" || text.length > 1_000))
      throw new PlatformError("invalid", `the ${what} of a campaign is a text`);
  if (!Number.isSafeInteger(atOnce) || atOnce < 1 || atOnce > 100)
    throw new PlatformError("invalid", "atOnce is a whole number from 1 to 100");
  if (typeof stopAtErrorRate !== "number" || !(stopAtErrorRate >= 0 && stopAtErrorRate <= 1))
    throw new PlatformError("invalid", "stopAtErrorRate is a number from 0 to 1");
  if (window !== null && !(isMinute(window.fromMinute) && isMinute(window.untilMinute)))
    throw new PlatformError("invalid", "a window begins and ends at a minute of the day, from 0 to 1439");
  if (window !== null && window.fromMinute === window.untilMinute)
    throw new PlatformError("invalid", "a window has a length; without one, there is no window");
  return {
    ...{ id, broker, offering, plan, space, atOnce, stopAtErrorRate, by, identity },
    window: window && { fromMinute: window.fromMinute, untilMinute: window.untilMinute },
    ...{ startedAt: now, endedAt: null, state: "collecting", failedInARow: 0, message: null, cursor: null },
    counts: { pending: 0, running: 0, succeeded: 0, failed: 0, skipped: 0, dropped: 0 },
  };
}

function isMinute(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < 24 * 60;
}

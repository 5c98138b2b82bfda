import { CommandError } from "../client/exit-status.js";
import { parseDurationMs } from "../duration.js";

/** `2h` from now on, or a time such as `2030-01-31T06:00:00Z`, as the API takes it. */
export function untilTime(text: string | undefined, now: number): string | undefined {
  if (text === undefined) return undefined;
  const afterMs = parseDurationMs(text);
  const time = afterMs === undefined ? writtenTime(text) : now + afterMs;
  if (!Number.isFinite(time) || time <= now || time > latest)
    throw new CommandError("usage", "--until is a time to come: 30m, 2h, 3d, or one such as 2030-01-31T06:00:00Z");
  return new Date(time).toISOString();
}

const latest = Date.UTC(9999, 0, 1);

/** With its zone: six in the morning is another time elsewhere. */
function writtenTime(text: string): number {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
}

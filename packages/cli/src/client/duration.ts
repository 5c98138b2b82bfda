import { InvalidArgumentError } from "commander";

const secondsOf = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;

/** Seconds from `90`, `90s`, `5m`, `2h` or `1d`; for an option, whose error then names it. */
export function parseDuration(text: string): number {
  const match = /^([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd]?)$/.exec(text);
  const seconds = Number(match?.[1]) * secondsOf[(match?.[2] || "s") as keyof typeof secondsOf];
  if (match === null || seconds <= 0 || seconds > 30 * secondsOf.d)
    throw new InvalidArgumentError("It must be a time such as 90s, 5m or 2h, and no more than 30 days.");
  return seconds;
}

/** For people: `8 s`, `2 min 5 s`, `3 h 2 min`. */
export function printDuration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}

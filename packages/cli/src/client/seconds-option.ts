import { InvalidArgumentError } from "commander";
import { unitsMs } from "../duration.js";

const longestSeconds = (30 * unitsMs.d) / 1_000;

/** Seconds from `90`, `90s`, `5m`, `2h` or `1d`; for an option, whose error then names it. */
export function parseSecondsOption(text: string): number {
  const match = /^([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd]?)$/.exec(text);
  const seconds = (Number(match?.[1]) * unitsMs[(match?.[2] || "s") as keyof typeof unitsMs]) / 1_000;
  if (match === null || seconds <= 0 || seconds > longestSeconds)
    throw new InvalidArgumentError("It must be a time such as 90s, 5m or 2h, and no more than 30 days.");
  return seconds;
}

import { median, medianRatio } from "../../../tools/bench/statistics.js";

/** Something that was measured, and what it is held to. */
export interface Figure {
  readonly what: string;
  readonly measured: string;
  /** `null`: told without being judged. */
  readonly target: string | null;
  readonly isMet: boolean;
  /** The numbers behind it, which belong to this machine alone. */
  readonly absolute: string;
}

/** A rate as a share of a ceiling's, both round by round. */
export function shareOf(
  what: string,
  mine: readonly number[],
  ceiling: readonly number[],
  least: number | null,
): Figure {
  const share = medianRatio(mine, ceiling);
  return {
    what,
    measured: percent(share),
    target: least === null ? null : `≥ ${percent(least)}`,
    isMet: least === null || share >= least,
    absolute: `${perSecond(median(mine))} of ${perSecond(median(ceiling))}`,
  };
}

/** A cost in times of another, both round by round, in milliseconds. */
export function timesOf(what: string, mine: readonly number[], base: readonly number[], most: number | null): Figure {
  const times = medianRatio(mine, base);
  return {
    what,
    measured: `${times.toFixed(2)} ×`,
    target: most === null ? null : `≤ ${most.toFixed(2)} ×`,
    isMet: most === null || times <= most,
    absolute: `${micros(median(mine))} against ${micros(median(base))}`,
  };
}

/** A number that is to be no larger than another. */
export function atMost(
  what: string,
  value: number,
  most: number | null,
  shown: (value: number) => string,
  absolute: string,
): Figure {
  const target = most === null ? null : `≤ ${shown(most)}`;
  return { what, measured: shown(value), target, isMet: most === null || value <= most, absolute };
}

export const megabytes = (value: number): string => `${value.toFixed(1)} MB`;
export const percentOfCore = (value: number): string => `${value.toFixed(2)} %`;
export const count = (value: number): string => value.toFixed(2);

export function perSecond(rate: number): string {
  return `${threeDigits(rate).toLocaleString("en")}/s`;
}

function micros(ms: number): string {
  return `${threeDigits(ms * 1_000).toLocaleString("en")} µs`;
}

function threeDigits(value: number): number {
  return Number(value.toPrecision(3));
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

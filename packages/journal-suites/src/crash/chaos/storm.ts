import { chanceOf } from "../chance.js";
import { type Disturbance, drawDisturbance } from "./disturbance.js";
import type { Terms } from "./terms.js";

/** What goes wrong, and when, from the beginning of the storm. */
export interface Storm {
  readonly atMs: number;
  readonly what: Disturbance;
}

export interface StormOptions extends Terms {
  readonly seed: number;
  readonly forMs: number;
}

/** Between two disturbances, on average. They last, so that several go on at a time. */
const pauseMs = 450;

/** Pure: the same seed and terms give the same storm. */
export function stormOf(options: StormOptions): readonly Storm[] {
  const chance = chanceOf(options.seed + 1);
  const storm: Storm[] = [];
  for (let atMs = chance.between(0, 2 * pauseMs); atMs < options.forMs; atMs += chance.between(0, 2 * pauseMs))
    storm.push({ atMs, what: drawDisturbance(chance, options) });
  return storm;
}

import { median, medianRatio, ratioSpread } from "../../../tools/bench/statistics.js";

/** Two contestants, each of which answers how many it did a second. */
export interface Contest {
  readonly ours: () => Promise<number>;
  readonly ceiling: () => Promise<number>;
}

export interface ContestResult {
  /** The median of the quotients round by round: what slows a whole round down does not count. */
  readonly ratio: number;
  /** Between which the middle half of the quotients lies: if they are far apart, so may the next run be. */
  readonly spread: readonly [number, number];
  readonly oursPerSecond: number;
  readonly ceilingPerSecond: number;
}

/**
 * Lets both run in turns, in short rounds: a machine that is busy for a while slows both down. Who begins changes with each round, so that
 * neither always runs on what the other has warmed up or worn out. The first rounds only warm up.
 */
export async function inTurns({ ours, ceiling }: Contest, rounds: number): Promise<ContestResult> {
  const mine: number[] = [];
  const theirs: number[] = [];
  for (let round = -warmUps; round < rounds; round++) {
    const first = round % 2 === 0 ? await ours() : undefined;
    const reference = await ceiling();
    const reached = first ?? (await ours());
    if (round < 0) continue;
    mine.push(reached);
    theirs.push(reference);
  }
  return {
    ratio: medianRatio(mine, theirs),
    spread: ratioSpread(mine, theirs),
    oursPerSecond: median(mine),
    ceilingPerSecond: median(theirs),
  };
}

const warmUps = 2;

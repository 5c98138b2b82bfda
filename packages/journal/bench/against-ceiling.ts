import type { Ceiling } from "./ceilings/ceiling.js";
import { perSecond } from "./figure.js";
import { bestOf, inTurn } from "./rounds.js";
import { median, medianRatio } from "./statistics.js";

export interface Contest {
  readonly ceiling: Ceiling;
  /** For so long; answers how many a second. */
  readonly ours: (ms: number) => Promise<number>;
  /** Also lets the driver commit one by one, for comparison. */
  readonly ungrouped: boolean;
  readonly rounds: number;
  readonly ms: number;
}

export interface ContestResult {
  /** Our rate as a share of the ceiling's best way. */
  readonly share: number;
  readonly beside: string;
  readonly details: Readonly<Record<string, readonly number[] | string>>;
}

/** Lets the journal and every way of its ceiling run in turn. */
export async function againstCeiling({ ceiling, ours, ungrouped, rounds, ms }: Contest): Promise<ContestResult> {
  const ways = Object.keys(ceiling.grouped);
  const results = await inTurn<string>(rounds, {
    ...Object.fromEntries(Object.entries(ceiling.grouped).map(([way, run]) => [way, () => run(ms)])),
    journal: () => ours(ms),
    ...(ungrouped && { ungrouped: () => ceiling.ungrouped(ms) }),
  });
  const best = bestOf(results, ways);
  const { journal = [], ungrouped: single } = results;
  const raw = results[best] ?? [];
  const alone = single === undefined ? "" : `; ${perSecond(median(single))} raw without grouping`;
  return {
    share: medianRatio(journal, raw),
    beside: `${perSecond(median(journal))} of ${perSecond(median(raw))} raw, ${best}${alone}`,
    details: { best, ...results },
  };
}

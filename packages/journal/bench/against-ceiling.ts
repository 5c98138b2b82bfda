import { bestOf, inTurn, type Rounds } from "../../../tools/bench/rounds.js";
import { median, medianRatio, ratioSpread } from "../../../tools/bench/statistics.js";
import type { Ceiling } from "./ceilings/ceiling.js";
import { perSecond } from "./figure.js";

export interface Contest {
  readonly ceiling: Ceiling;
  /** For so long; answers how many a second. */
  readonly ours: (ms: number) => Promise<number>;
  readonly rounds: number;
  readonly ms: number;
}

export interface ContestResult {
  /** Our rate as a share of the ceiling's best way. */
  readonly share: number;
  readonly spread: readonly [number, number];
  /** Our rate as a share of the best way that has no more under way than our callers, if there are such ways. */
  readonly shareOfShared: number | undefined;
  readonly spreadOfShared: readonly [number, number];
  readonly beside: string;
  readonly besideShared: string;
  readonly details: Readonly<Record<string, readonly number[] | string>>;
}

/** Lets the journal and every way of its ceiling run in turn. */
export async function againstCeiling({ ceiling, ours, rounds, ms }: Contest): Promise<ContestResult> {
  const ways = Object.entries({ ...ceiling.grouped, ...ceiling.shared });
  const results = await inTurn<string>(rounds, {
    ...Object.fromEntries(ways.map(([way, run]) => [way, () => run(ms)])),
    journal: () => ours(ms),
    ungrouped: () => ceiling.ungrouped(ms),
  });
  const best = bestOf(results, Object.keys(ceiling.grouped));
  const shared = Object.keys(ceiling.shared);
  const bestShared = shared.length === 0 ? best : bestOf(results, shared);
  const [journal, ungrouped] = [results.journal ?? [], results.ungrouped ?? []];
  return {
    share: medianRatio(journal, results[best] ?? []),
    spread: ratioSpread(journal, results[best] ?? []),
    shareOfShared: shared.length === 0 ? undefined : medianRatio(journal, results[bestShared] ?? []),
    spreadOfShared: ratioSpread(journal, results[bestShared] ?? []),
    beside: `${sentence(results, best)}; ${perSecond(median(ungrouped))} raw without grouping`,
    besideShared: sentence(results, bestShared),
    details: { best, bestShared, ...results },
  };
}

function sentence(results: Rounds<string>, way: string): string {
  return `${perSecond(median(results.journal ?? []))} of ${perSecond(median(results[way] ?? []))} raw, ${way}`;
}

/** Something that was measured, and what it is held to. */
export interface Figure {
  readonly what: string;
  readonly measured: string;
  readonly target: string;
  readonly isMet: boolean;
  /** The numbers behind it, which belong to this machine alone. */
  readonly absolute: string;
}

/** At most so many times as much. */
export function atMost(
  what: string,
  mine: number,
  theirs: number,
  times: number,
  unit: Unit,
  ratio = mine / theirs,
): Figure {
  const absolute = `${unit(mine)} against ${unit(theirs)}`;
  return { what, measured: `${ratio.toFixed(2)} ×`, target: `≤ ${times} ×`, isMet: ratio <= times, absolute };
}

type Unit = (value: number) => string;

export const ms: Unit = (value) => `${value.toFixed(value < 100 ? 1 : 0)} ms`;
export const kilobytes: Unit = (value) => `${Math.round(value / 1_000)} kB`;
export const megabytes: Unit = (value) => `${Math.round(value / 1_000_000)} MB`;
export const perSecond: Unit = (value) => `${value.toFixed(1)}/s`;

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Contestants take turns, because machines are noisy. The first round warms up, and the median of the others counts. */
export async function inTurns<Name extends string>(
  rounds: number,
  contestants: Readonly<Record<Name, (round: number) => Promise<number>>>,
): Promise<Readonly<Record<Name, number>>> {
  const measured = new Map<Name, number[]>();
  const names = Object.keys(contestants) as Name[];
  for (let round = 0; round <= rounds; round++)
    for (const name of names) {
      const value = await contestants[name](round);
      if (round > 0) measured.set(name, [...(measured.get(name) ?? []), value]);
    }
  return Object.fromEntries(names.map((name) => [name, median(measured.get(name) ?? [])])) as Record<Name, number>;
}

/** Two contestants in turns: their medians, and the median of the ratios of each round, in which the machine was as busy for both. */
export async function ratioInTurns(
  rounds: number,
  mine: (round: number) => Promise<number>,
  theirs: (round: number) => Promise<number>,
): Promise<{ readonly mine: number; readonly theirs: number; readonly ratio: number }> {
  const all: { readonly mine: number; readonly theirs: number }[] = [];
  for (let round = 0; round <= rounds; round++) all.push({ mine: await mine(round), theirs: await theirs(round) });
  const counted = all.slice(1);
  return {
    mine: median(counted.map((each) => each.mine)),
    theirs: median(counted.map((each) => each.theirs)),
    ratio: median(counted.map((each) => each.mine / each.theirs)),
  };
}

export async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

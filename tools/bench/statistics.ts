/** The value below which a share of the values lies. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const below = sorted[Math.floor(at)] ?? Number.NaN;
  const above = sorted[Math.ceil(at)] ?? Number.NaN;
  return below + (above - below) * (at - Math.floor(at));
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The median of the quotients round by round: what slows a whole round down does not count. */
export function medianRatio(values: readonly number[], by: readonly number[]): number {
  return median(ratios(values, by));
}

/** Between which the middle half of these quotients lies: if they are far apart, so may the next run be. */
export function ratioSpread(values: readonly number[], by: readonly number[]): readonly [number, number] {
  return [quantile(ratios(values, by), 0.25), quantile(ratios(values, by), 0.75)];
}

function ratios(values: readonly number[], by: readonly number[]): readonly number[] {
  return values.map((value, round) => value / (by[round] ?? Number.NaN));
}

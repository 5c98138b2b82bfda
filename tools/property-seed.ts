/**
 * What CI gives properties, so that each change meets the same cases: what it breaks shows, and what only chance finds holds nobody up. Without
 * it they are new each time.
 */
export function propertySeed(): { readonly seed?: number } {
  const seed = process.env.OSBERT_FUZZ_SEED;
  return seed === undefined ? {} : { seed: Number(seed) };
}

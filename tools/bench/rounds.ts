import { median } from "./statistics.js";

/** What each contestant reached, round by round. */
export type Rounds<Name extends string> = Readonly<Record<Name, readonly number[]>>;

/**
 * Lets contestants run in turn, A B C A B C: a machine that is busy for a while slows all of them down. The first round only
 * warms up. Contestants answer a rate or a time.
 */
export async function inTurn<Name extends string>(
  rounds: number,
  contestants: Readonly<Record<Name, () => Promise<number>>>,
): Promise<Rounds<Name>> {
  const names = Object.keys(contestants) as Name[];
  const results = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, number[]>;
  for (let round = 0; round <= rounds; round++) {
    for (const name of names) {
      // No gc() in between: V8 answers it by giving up the room for young objects, which would slow down whoever makes many of them.
      const result = await contestants[name]();
      if (round > 0) results[name].push(result);
    }
  }
  return results;
}

/** The contestant with the highest median. */
export function bestOf<Name extends string>(rounds: Rounds<Name>, among: readonly Name[]): Name {
  const [first, ...others] = among;
  if (first === undefined) throw new Error("nobody took part");
  return others.reduce((best, name) => (median(rounds[name]) > median(rounds[best]) ? name : best), first);
}

/** What has not come for so long is new again. */
const forgottenAfterMs = 10 * 60_000;
/** So many different ones are told apart; the one that has not come for longest is forgotten. */
const mostKept = 500;

/** Counts how often the same comes, within bounds, so that it need not be told every time. */
export class Repeats {
  readonly #known = new Map<string, { readonly count: number; readonly at: number }>();

  /** How often it has come, with this time. */
  count(what: string, now: number): number {
    const known = this.#known.get(what);
    const count = known === undefined || now - known.at > forgottenAfterMs ? 1 : known.count + 1;
    this.#known.delete(what);
    this.#known.set(what, { count, at: now });
    if (this.#known.size > mostKept) this.#known.delete(this.#known.keys().next().value as string);
    return count;
  }
}

/** The first time, the tenth, the hundredth…: a million times are seven lines. */
export function isWorthTelling(count: number): boolean {
  return /^10*$/.test(String(count));
}

/**
 * Leases given back while claims were on their way: an answer to one of those may be older than the giving back, and tell of a lease
 * that is over. Each is remembered until the last claim of that moment is over; later ones cannot know of it.
 */
export class GivenBack {
  readonly #given = new Map<string, { readonly epoch: number; readonly claim: number }>();
  readonly #underWay = new Set<number>();
  #claims = 0;

  /** How many are remembered. */
  get size(): number {
    return this.#given.size;
  }

  /** A claim begins. Answers what to call when it, and the adopting of what it brought, is over. */
  claimBegins(): () => void {
    const claim = ++this.#claims;
    this.#underWay.add(claim);
    return () => {
      this.#underWay.delete(claim);
      const [oldest = Number.POSITIVE_INFINITY] = this.#underWay;
      // In the order of claims, so those that may go are the first.
      for (const [key, given] of this.#given) {
        if (given.claim >= oldest) return;
        this.#given.delete(key);
      }
    };
  }

  add(key: string, epoch: number): void {
    if (this.#underWay.size === 0) return;
    this.#given.delete(key);
    this.#given.set(key, { epoch, claim: this.#claims });
  }

  /** Whether an answer that tells of this epoch is older than the giving back. */
  outdates(key: string, epoch: number): boolean {
    return epoch <= (this.#given.get(key)?.epoch ?? -1);
  }
}

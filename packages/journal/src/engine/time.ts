import type { Clock } from "../clock.js";

/** Clocks are read in whole milliseconds, here and there. */
const toleranceMs = 10;

/** The store's clock as this process knows it: read with every answer of the store, carried on with the monotonic clock in between. */
export class StoreTime {
  readonly #clock: Clock;
  #offset = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return Math.floor(this.#clock.monotonicMs() + this.#offset);
  }

  /** To be taken before the store is asked, for `learn`. */
  asks(): number {
    return this.#clock.monotonicMs();
  }

  /**
   * The store's time was read at some moment between question and answer. What is known stays if that fits, so that `now` does not go
   * back with a slow answer; if it does not, the store's clock has moved, and is followed.
   */
  learn(storeNow: number, askedAt: number): void {
    const earliest = storeNow - this.#clock.monotonicMs();
    const latest = storeNow - askedAt;
    if (!(this.#offset >= earliest)) this.#offset = earliest;
    else if (this.#offset > latest + toleranceMs) this.#offset = latest;
  }
}

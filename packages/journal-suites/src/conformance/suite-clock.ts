/** The time of one test. It stands still until the test moves it. */
export class SuiteClock {
  #now = Date.UTC(2030, 0, 1);

  /** For a store's `clock` option. */
  readonly now = (): number => this.#now;

  advance(ms: number): void {
    this.#now += ms;
  }
}

import { nextDelayMs } from "../decisions/backoff.js";

/** Beyond so many, the one that failed longest ago is forgotten, and tried sooner than it might be. */
const most = 10_000;

/**
 * Resources whose attempts could not be recorded, because the store refused what it was given although it answers. Their steps had their
 * effects, and would have them again with every attempt: so each is left alone for a while that grows with its failures in a row.
 * In memory alone, because nothing can be written: another process, or the next one, begins to count anew.
 */
export class Unrecorded {
  readonly #random: () => number;
  readonly #failed = new Map<string, { readonly failures: number; readonly until: number }>();

  constructor(random: () => number) {
    this.#random = random;
  }

  failed(key: string, now: number): void {
    const failures = (this.#failed.get(key)?.failures ?? 0) + 1;
    this.#failed.delete(key);
    this.#failed.set(key, { failures, until: now + nextDelayMs(failures, this.#random) });
    const [oldest] = this.#failed.keys();
    if (this.#failed.size > most && oldest !== undefined) this.#failed.delete(oldest);
  }

  recorded(key: string): void {
    if (this.#failed.size > 0) this.#failed.delete(key);
  }

  /** When something may be tried again; 0: at once. */
  until(key: string): number {
    return this.#failed.get(key)?.until ?? 0;
  }
}

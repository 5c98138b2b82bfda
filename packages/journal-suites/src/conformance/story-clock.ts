import type { Clock } from "@osbert/journal";
import { manualClock } from "@osbert/journal/testing";

/** More timers than this in one stretch of time are a loop that never rests. */
const mostTimers = 20_000;

/**
 * The time of one story: of its engines and of its stores. It passes only when the story says so, from timer to timer, and what a timer
 * started is over before the next one is due: on a store that takes real time to answer as on one in memory.
 */
export class StoryClock implements Clock {
  readonly #manual = manualClock();
  readonly #timers = new Set<{ readonly at: number }>();
  readonly #quiet: () => Promise<void>;

  constructor(quiet: () => Promise<void>) {
    this.#quiet = quiet;
  }

  /** For a store's `clock` option. */
  readonly now = (): number => this.#manual.wallMs();

  monotonicMs(): number {
    return this.#manual.monotonicMs();
  }

  after(ms: number, wake: () => void): () => void {
    const timer = { at: this.monotonicMs() + Math.max(0, ms) };
    this.#timers.add(timer);
    const callOff = this.#manual.after(ms, () => {
      this.#timers.delete(timer);
      wake();
    });
    return () => {
      this.#timers.delete(timer);
      callOff();
    };
  }

  async pass(ms: number): Promise<void> {
    const end = this.monotonicMs() + ms;
    for (let woken = 0; ; woken++) {
      await this.#quiet();
      const next = Math.min(...Array.from(this.#timers, ({ at }) => at));
      if (next > end) break;
      if (woken > mostTimers) throw new Error(`more than ${mostTimers} timers within ${ms} ms: something never rests`);
      await this.#manual.advance(Math.max(0, next - this.monotonicMs()));
    }
    await this.#manual.advance(end - this.monotonicMs());
    await this.#quiet();
  }

  /** All at once, whatever should have happened in between: a process that was frozen, a machine that slept. */
  async jump(ms: number): Promise<void> {
    await this.#manual.advance(ms);
    await this.#quiet();
  }
}

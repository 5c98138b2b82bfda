import type { Clock } from "../clock.js";

/** A clock that a test moves. It serves as the engine's clock and as the store's (`wallMs`). */
export interface ManualClock extends Clock {
  /** For a store's `clock` option. */
  readonly wallMs: () => number;
  /** Goes on by so much, waking timers in their order and letting what they start take its course. */
  advance(ms: number): Promise<void>;
}

export function manualClock(startMs = Date.UTC(2030, 0, 1)): ManualClock {
  let elapsed = 0;
  const timers = new Set<{ at: number; wake: () => void }>();
  return {
    wallMs: () => startMs + elapsed,
    monotonicMs: () => elapsed,
    after(ms, wake) {
      const timer = { at: elapsed + Math.max(0, ms), wake };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    async advance(ms) {
      const end = elapsed + ms;
      for (;;) {
        await settle();
        const next = [...timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
        if (next === undefined) break;
        timers.delete(next);
        elapsed = Math.max(elapsed, next.at);
        next.wake();
      }
      elapsed = end;
      await settle();
    },
  };
}

/** Lets everything run that waits for nothing but its turn. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

import type { Clock } from "@osbert/journal";

/** A clock that goes on by itself, and can be put forward: hours pass in which nothing else happens. */
export interface JumpingClock extends Clock {
  /** For a store's `clock` option. */
  readonly wallMs: () => number;
  /** Whatever is due by then is woken now. */
  jump(ms: number): void;
}

export function jumpingClock(): JumpingClock {
  let ahead = 0;
  const timers = new Set<{ readonly at: number; readonly wake: () => void; timer: NodeJS.Timeout }>();
  const monotonicMs = () => performance.now() + ahead;
  const began = Date.now() - performance.now();
  return {
    monotonicMs,
    wallMs: () => Math.floor(began + monotonicMs()),
    after(ms, wake) {
      const fire = () => {
        timers.delete(entry);
        wake();
      };
      const entry = { at: monotonicMs() + ms, wake: fire, timer: setTimeout(fire, Math.min(ms, 2_147_483_647)) };
      timers.add(entry);
      return () => {
        clearTimeout(entry.timer);
        timers.delete(entry);
      };
    },
    jump(ms) {
      ahead += ms;
      const now = monotonicMs();
      for (const entry of [...timers]) {
        clearTimeout(entry.timer);
        if (entry.at <= now) setImmediate(entry.wake);
        else entry.timer = setTimeout(entry.wake, Math.min(entry.at - now, 2_147_483_647));
      }
    },
  };
}

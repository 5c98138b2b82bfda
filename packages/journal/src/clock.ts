/** Time and chance come in through these ports, so that tests own them. */
export interface Clock {
  /** Milliseconds; only differences count. Never goes backwards. */
  monotonicMs(): number;
  /** Calls back once after so long. Answers how to call it off. */
  after(ms: number, wake: () => void): () => void;
}

/** setTimeout takes no more than this; a longer wait is looked at again then. */
const longestTimerMs = 2_147_483_647;

export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  after(ms, wake) {
    const timer = setTimeout(wake, Math.min(Math.max(0, ms), longestTimerMs));
    return () => clearTimeout(timer);
  },
};

/**
 * A wall clock that cannot jump: it is read once and goes on with the monotonic clock. Never below `notBefore`, so that a machine
 * whose clock was set back by hours does not put what is due hours away.
 */
export function steadyWallClock(notBefore = 0, wall: () => number = Date.now): () => number {
  const start = Math.max(wall(), notBefore);
  const startedAt = performance.now();
  return () => Math.floor(start + (performance.now() - startedAt));
}

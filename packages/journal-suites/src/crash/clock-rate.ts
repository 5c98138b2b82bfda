/**
 * From now on the clocks and timers of this thread go at another rate: 1.1 is a clock that gains six minutes an hour. What is witnessed
 * is told by `process.hrtime`, which stays as it is.
 */
export function setClockRate(rate: number): void {
  if (rate === 1) return;
  const { setTimeout: timeout, setInterval: interval } = globalThis;
  const rated = (now: () => number) => {
    const start = now();
    return () => start + (now() - start) * rate;
  };
  performance.now = rated(performance.now.bind(performance));
  Date.now = rated(Date.now.bind(Date));
  const slow =
    <Timer extends typeof timeout | typeof interval>(timer: Timer) =>
    (callback: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
      timer(callback, ms / rate, ...args);
  Object.assign(globalThis, { setTimeout: slow(timeout), setInterval: slow(interval) });
}

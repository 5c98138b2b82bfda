/** So many callers at once, each asking again as soon as it is answered, for so long. Answers how many were answered a second. */
export async function ratePerSecond(callers: number, ms: number, ask: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  let answered = 0;
  const call = async () => {
    while (performance.now() - started < ms) {
      await ask();
      answered++;
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
  return (answered * 1000) / (performance.now() - started);
}

/** So many callers at once, until so many were answered. Answers how long that took, in milliseconds. */
export async function timeOf(callers: number, asks: number, ask: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  let left = asks;
  const call = async () => {
    while (left > 0) {
      left--;
      await ask();
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
  return performance.now() - started;
}

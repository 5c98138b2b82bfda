/** How a watch takes its time. */
export interface WatchPace {
  /** The server is asked to end a watch after so long, half as much more or less. Then it goes on with another. */
  readonly watchMs: number;
  /** A connection on which nothing came for so long is dead. Bookmarks come every minute, or every other one where nothing happens. */
  readonly quietMs: number;
  /** What is held is `behind` when the server was not heard of for so long. */
  readonly behindAfterMs: number;
  /** A watch that ends before this was never one. */
  readonly settledMs: number;
  /** A kind that is not there is looked for again after so long. */
  readonly lookAgainMs: number;
  readonly firstDelayMs: number;
  readonly longestDelayMs: number;
  /** For a page of a list, and for the beginning of a watch. */
  readonly timeoutMs: number;
}

export const usualPace: WatchPace = {
  watchMs: 300_000,
  quietMs: 150_000,
  behindAfterMs: 20_000,
  settledMs: 1_000,
  lookAgainMs: 30_000,
  firstDelayMs: 500,
  longestDelayMs: 30_000,
  timeoutMs: 30_000,
};

/** After so many failures in a row. What the server asks for counts where it is longer, up to a minute. */
export function nextDelayMs(
  { firstDelayMs, longestDelayMs }: WatchPace,
  failures: number,
  retryAfterMs: number | null,
  random: () => number,
): number {
  const own = Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(failures, 16)) * (0.5 + random() / 2);
  return Math.max(own, Math.min(60_000, (retryAfterMs ?? 0) * (1 + random() / 4)));
}

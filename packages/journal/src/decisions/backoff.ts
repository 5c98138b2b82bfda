export interface Backoff {
  readonly firstMs: number;
  readonly factor: number;
  readonly longestMs: number;
}

export const defaultBackoff: Backoff = { firstMs: 500, factor: 2, longestMs: 60_000 };

/** How long to wait after so many failures in a row: exponential, with jitter over its upper half so that a crowd spreads. */
export function nextDelayMs(failures: number, random: () => number, backoff: Backoff = defaultBackoff): number {
  const full = Math.min(backoff.longestMs, backoff.firstMs * backoff.factor ** Math.max(0, failures - 1));
  return Math.round(full * (0.5 + random() / 2));
}

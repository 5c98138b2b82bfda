const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** What a duration looks like, for patterns. */
export const durationPattern = "^[0-9]{1,9}(ms|s|m|h|d)$";

/** `30s`, `5m`, `2h`, `3d`, `500ms` in milliseconds; `undefined` for anything else. A number without a unit means nothing. */
export function parseDuration(text: string): number | undefined {
  const match = /^([0-9]{1,9})(ms|s|m|h|d)$/.exec(text);
  return match === null ? undefined : Number(match[1]) * units[match[2] as keyof typeof units];
}

/** In the largest unit that says it exactly. */
export function formatDuration(ms: number): string {
  for (const unit of ["d", "h", "m", "s"] as const) {
    if (ms !== 0 && ms % units[unit] === 0) return `${ms / units[unit]}${unit}`;
  }
  return `${ms}ms`;
}

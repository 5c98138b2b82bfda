/** The units that durations are written in, in milliseconds. */
export const unitsMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** What a duration looks like, for patterns. */
export const durationPattern = "^[0-9]{1,9}(ms|s|m|h|d)$";

/** `30s`, `5m`, `2h`, `3d`, `500ms` in milliseconds; `undefined` for anything else. A number without a unit means nothing. */
export function parseDurationMs(text: string): number | undefined {
  const match = /^([0-9]{1,9})(ms|s|m|h|d)$/.exec(text);
  return match === null ? undefined : Number(match[1]) * unitsMs[match[2] as keyof typeof unitsMs];
}

/** As it is written in settings: in the largest unit that says it exactly. */
export function formatDurationMs(ms: number): string {
  for (const unit of ["d", "h", "m", "s"] as const) {
    if (ms !== 0 && ms % unitsMs[unit] === 0) return `${ms / unitsMs[unit]}${unit}`;
  }
  return `${ms}ms`;
}

/** For people who wait: `8 s`, `2 min 5 s`, `3 h 2 min`. */
export function formatElapsedMs(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}

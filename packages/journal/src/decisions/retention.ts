import type { Outcome } from "../operation.js";
import type { StoredEntry } from "../store.js";

/** How long entries are kept after their operation ended (or, if they belong to none, after they were written). `null`: for ever. */
export interface Retention {
  readonly succeededMs: number | null;
  readonly failedMs: number | null;
  readonly cancelledMs: number | null;
  readonly notesMs: number | null;
}

const dayMs = 24 * 60 * 60 * 1000;

export const defaultRetention: Retention = {
  succeededMs: 30 * dayMs,
  failedMs: 90 * dayMs,
  cancelledMs: 30 * dayMs,
  notesMs: 90 * dayMs,
};

/** When something that ended (or was noted) at `from` may go. */
export function agesOf(retention: Retention, what: Outcome["kind"] | "note", from: number): number | null {
  const ages = {
    succeeded: retention.succeededMs,
    failed: retention.failedMs,
    cancelled: retention.cancelledMs,
    note: retention.notesMs,
  };
  const age = ages[what];
  return age === null ? null : from + age;
}

/** No commit removes more. */
const mostDeleted = 2_000;

export interface Pruning {
  readonly delete: readonly number[];
  /** When to look again; `null`: there is nothing that will ever go. */
  readonly nextAt: number | null;
}

/**
 * Which of a resource's oldest entries (a run of them, from its first one on) may go. An operation's entries go together, once it
 * has ended long enough ago; those of an operation whose end is not among `entries` stay, so an open one loses nothing.
 */
export function pruning(
  entries: readonly StoredEntry[],
  complete: boolean,
  retention: Retention,
  now: number,
): Pruning {
  const ends = new Map<string, number | null>();
  for (const entry of entries) {
    if (entry.kind !== "settled" || entry.operation === null) continue;
    const { payload } = JSON.parse(entry.body) as { payload: Outcome };
    ends.set(entry.operation, agesOf(retention, payload.kind, entry.at));
  }
  const goes = (entry: StoredEntry): number | null => {
    if (entry.operation !== null) return ends.get(entry.operation) ?? null;
    return entry.kind === "pruned" ? 0 : agesOf(retention, "note", entry.at);
  };
  const due = entries.filter((entry) => isDue(goes(entry), now)).map(({ seq }) => seq);
  const deleted = due.slice(0, mostDeleted);
  const later = entries.map(goes).filter((at): at is number => at !== null && at > now);
  if (deleted.length < due.length) later.push(now);
  // What lies behind the run that was read is looked at soon, unless nothing could be removed here: then it is not looked at over and over.
  if (!complete) later.push(deleted.length > 0 ? now : now + dayMs);
  const nextAt = later.reduce((earliest, at) => Math.min(earliest, at), Number.POSITIVE_INFINITY);
  return { delete: deleted, nextAt: Number.isFinite(nextAt) ? nextAt : null };
}

function isDue(at: number | null, now: number): boolean {
  return at !== null && at <= now;
}

import type { Json } from "../json.js";
import type { Outcome } from "../operation.js";
import type { Entry } from "../resource.js";
import type { StoredEntry } from "../store.js";

/** How long entries are kept after their operation ended (or, if they belong to none, after they were written). `null`: for ever. */
export interface Retention {
  readonly succeededMs: number | null;
  readonly failedMs: number | null;
  readonly cancelledMs: number | null;
  readonly notesMs: number | null;
  /** How long the bare record of a resource that is gone stays after its last entries went, so that it is known to have been. Default 0. */
  readonly goneMs?: number;
  /** A rule of one's own instead of the ages, for the operations that it answers for. Pure. `undefined`: the ages count. */
  readonly goesAt?: (ended: EndedAt) => number | null | undefined;
  /**
   * Numbers of entries that something in these parts of the resource refers to, as the results of steps that are still to be undone:
   * the operations that they belong to stay for as long as it does. Shown are the parts of operations that did not end well. Pure.
   */
  readonly needed?: (parts: ReadonlyMap<string, Json>) => readonly number[];
  /** Handed every entry before it is removed. */
  readonly archive?: Archive;
}

/**
 * Keeps entries elsewhere that are about to be removed. At least once: none is removed that was not handed over before, and when a
 * process is killed in between, or the removal was refused, they are handed over again, with the same key and numbers. While it rejects,
 * or takes longer than half a minute, nothing of the resource is removed, and it is asked again ten minutes later.
 */
export type Archive = (key: string, entries: readonly Entry[]) => Promise<void>;

/** The end of an operation, as far as its retention depends on it. */
export interface EndedAt {
  readonly outcome: Outcome["kind"];
  /** The part of the resource that it was about; `null`: the resource itself. */
  readonly part: string | null;
  readonly at: number;
}

const dayMs = 24 * 60 * 60 * 1000;

export const defaultRetention: Retention = {
  succeededMs: 30 * dayMs,
  failedMs: 90 * dayMs,
  cancelledMs: 30 * dayMs,
  notesMs: 90 * dayMs,
};

/** When the entries of an operation that ended may go. */
export function goesAt(retention: Retention, ended: EndedAt): number | null {
  const own = retention.goesAt?.(ended);
  return own === undefined ? agesOf(retention, ended.outcome, ended.at) : own;
}

/** When something that ended (or was noted) at `from` may go, by its age. */
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
  gone = false,
  needed: ReadonlySet<number> = new Set(),
): Pruning {
  const held = new Set(entries.filter(({ seq }) => needed.has(seq)).map(({ operation }) => operation));
  const parts = new Map<string, string | null>();
  const ends = new Map<string, number | null>();
  for (const { kind, operation, body, at } of entries) {
    if (operation === null) continue;
    if (kind === "accepted") parts.set(operation, payloadOf<{ part?: string | null } | null>(body)?.part ?? null);
    if (kind !== "settled") continue;
    const { kind: outcome } = payloadOf<Outcome>(body);
    ends.set(operation, goesAt(retention, { outcome, part: parts.get(operation) ?? null, at }));
  }
  const goneMs = gone ? (retention.goneMs ?? 0) : 0;
  // What tells of a pruning goes with the next one, so that a bare record has one such entry, and goes when that is old enough. Should it
  // have more, the first one counts: looking at it does not make it younger.
  const pruned = goneMs > 0 && isBare(entries) ? (entries[0]?.at ?? 0) + goneMs : 0;
  const goes = (entry: StoredEntry): number | null => {
    if (entry.operation !== null) {
      const at = ends.get(entry.operation) ?? null;
      return at !== null && held.has(entry.operation) ? Math.max(at, now + dayMs) : at;
    }
    if (entry.kind === "pruned") return pruned;
    return agesOf(retention, "note", entry.at);
  };
  const due = entries.filter((entry) => isDue(goes(entry), now)).map(({ seq }) => seq);
  const deleted = due.slice(0, mostDeleted);
  const later = entries.map(goes).filter((at): at is number => at !== null && at > now);
  if (deleted.length < due.length) later.push(now);
  // What lies behind the run that was read is looked at soon, unless nothing could be removed here: then it is not looked at over and over.
  if (!complete) later.push(deleted.length > 0 ? now : now + dayMs);
  // A bare record that has just become one.
  if (goneMs > 0 && deleted.length > 0 && !isBare(entries)) later.push(now + goneMs);
  const nextAt = later.reduce((earliest, at) => Math.min(earliest, at), Number.POSITIVE_INFINITY);
  return { delete: deleted, nextAt: Number.isFinite(nextAt) ? nextAt : null };
}

/** The operations among the entries that ended, but not well: what they were, and about which part. */
export function endedBadly(entries: readonly StoredEntry[]): readonly Accepted[] {
  const asked = new Map<string, Accepted>();
  const badly: Accepted[] = [];
  for (const { kind, operation, body } of entries) {
    if (operation === null) continue;
    if (kind === "accepted") asked.set(operation, payloadOf<Accepted>(body));
    const accepted = asked.get(operation);
    if (kind === "settled" && accepted !== undefined && payloadOf<Outcome>(body).kind !== "succeeded")
      badly.push(accepted);
  }
  return badly;
}

export interface Accepted {
  readonly kind: string;
  readonly part: string | null;
}

/** Whether nothing is left but the word that there was something. */
export function isBare(entries: readonly StoredEntry[]): boolean {
  return entries.every(({ kind }) => kind === "pruned");
}

function payloadOf<Payload>(body: string): Payload {
  return (JSON.parse(body) as { payload: Payload }).payload;
}

function isDue(at: number | null, now: number): boolean {
  return at !== null && at <= now;
}

import type { Digest } from "../sources/source.js";
import type { ServiceRecord, TombstoneRecord } from "./records.js";

/** From the moment that a request was judged to its commit, with room to spare. */
const commitMs = 300_000;

/**
 * Whether a revision is sure to stay for an instance that was accepted with it at a time (F5-48). Collection looks for instances before it
 * removes anything, and not before `retiredMs` have passed since the spec retired, or the revision was superseded: what was accepted
 * until then it sees. Later than that, an instance was made from a catalog that was very old, and may have been missed.
 */
export function keepsRevision(
  record: ServiceRecord | TombstoneRecord,
  digest: Digest,
  acceptedAt: number,
  retiredMs: number,
): boolean {
  if (record.kind === "deleted") return false;
  const inTime = (since: number) => acceptedAt <= since + retiredMs - Math.min(commitMs, retiredMs / 2);
  if (record.state.kind === "retired" && !inTime(record.state.since)) return false;
  if (record.current.digest === digest) return true;
  const index = record.history.findIndex((kept) => kept.digest === digest);
  return index !== -1 && inTime((record.history[index - 1] ?? record.current).at);
}

import type { Change, Lease } from "../../store.js";
import { leaseAfter } from "../lease-after.js";

/** A record as the server has it, locked for this transaction. */
export interface Locked {
  readonly id: number;
  readonly seq: number;
  readonly epoch: number;
  readonly dueAt: number | null;
  readonly lease: Lease | null;
}

/** What becomes of a change: nothing, or these values of its record. */
export type CommitDecision = { readonly kind: "conflict" } | Write;

export interface Write {
  readonly kind: "write";
  readonly change: Change;
  readonly id: number;
  readonly isNew: boolean;
  readonly firstSeq: number;
  readonly seq: number;
  readonly dueAt: number | null;
  readonly lease: Lease | null;
}

/** J2: a change is carried out if the record is at what it expects. A new record gets `newId`. */
export function decideCommit(change: Change, found: Locked | undefined, newId: number): CommitDecision {
  const { expected } = change;
  const asExpected =
    found === undefined
      ? expected === null
      : expected !== null && found.seq === expected.seq && found.epoch === expected.epoch;
  if (!asExpected) return { kind: "conflict" };
  const seq = found?.seq ?? 0;
  return {
    kind: "write",
    change,
    id: found?.id ?? newId,
    isNew: found === undefined,
    firstSeq: seq + 1,
    seq: seq + change.entries.length,
    ...leaseAfter(change, found),
  };
}

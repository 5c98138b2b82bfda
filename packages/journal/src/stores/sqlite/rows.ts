import type { Lease, StoredEntry, StoredPart, StoredRecord } from "../../store.js";

/** Columns come in as SQLite has them: whoever can write to the file can write anything. */
export type Row = readonly unknown[];

export const recordColumns = "key, seq, epoch, lane, due_at, lease_owner, lease_until, state";

/** Of a row with `recordColumns`. */
export function recordOf(row: Row): StoredRecord {
  const [key, seq, epoch, lane, dueAt, owner, until, state] = row;
  return {
    key: textOf(key),
    seq: numberOf(seq),
    epoch: numberOf(epoch),
    state: textOf(state),
    lane: textOf(lane),
    dueAt: dueAt === null ? null : numberOf(dueAt),
    lease: leaseOf(owner, until),
  };
}

export const entryColumns = "seq, at, kind, operation, token, body";

/** Of a row with `entryColumns`. */
export function entryOf(row: Row): StoredEntry {
  const [seq, at, kind, operation, token, body] = row;
  return {
    seq: numberOf(seq),
    at: numberOf(at),
    kind: textOf(kind),
    operation: operation === null ? null : textOf(operation),
    token: textOf(token),
    body: textOf(body),
  };
}

/** Of a row with id and body. */
export function partOf([id, body]: Row): StoredPart {
  return { id: textOf(id), body: textOf(body) };
}

export function leaseOf(owner: unknown, until: unknown): Lease | null {
  return owner === null ? null : { owner: textOf(owner), until: numberOf(until) };
}

/**
 * What is no text is given as one that is no JSON: the journal then sets that one resource aside, instead of failing
 * altogether.
 */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : `not a text: ${value === null ? "null" : typeof value}`;
}

export function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

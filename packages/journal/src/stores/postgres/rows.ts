import type { StoredEntry, StoredRecord } from "../../store.js";
import type { Row } from "./session.js";

/** The columns that `recordOf` reads, in SQL, of a table or alias. */
export function recordColumns(of: string): string {
  return ["key", "seq", "epoch", "state", "lane", "due_at", "lease_owner", "lease_until"]
    .map((column) => `${of}.${column}`)
    .join(", ");
}

export function recordOf(row: Row, from = 0): StoredRecord {
  const owner = row[from + 6] ?? null;
  return {
    key: textAt(row, from),
    seq: numberAt(row, from + 1),
    epoch: numberAt(row, from + 2),
    state: textAt(row, from + 3),
    lane: textAt(row, from + 4),
    dueAt: optionalNumberAt(row, from + 5),
    lease: owner === null ? null : { owner, until: numberAt(row, from + 7) },
  };
}

/** The columns that `entryOf` reads, in SQL, of a table or alias. */
export function entryColumns(of: string): string {
  return ["seq", "at", "token", "kind", "operation", "body"].map((column) => `${of}.${column}`).join(", ");
}

export function entryOf(row: Row, from = 0): StoredEntry {
  return {
    seq: numberAt(row, from),
    at: numberAt(row, from + 1),
    token: textAt(row, from + 2),
    kind: textAt(row, from + 3),
    operation: row[from + 4] ?? null,
    body: textAt(row, from + 5),
  };
}

export function textAt(row: Row | undefined, index: number): string {
  return row?.[index] ?? "";
}

/** A bigint comes as text. All that the store keeps are within what JavaScript counts with. */
export function numberAt(row: Row | undefined, index: number): number {
  return Number(row?.[index]);
}

export function optionalNumberAt(row: Row | undefined, index: number): number | null {
  const value = row?.[index] ?? null;
  return value === null ? null : Number(value);
}

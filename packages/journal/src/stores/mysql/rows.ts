import type { Lease, StoredEntry, StoredPart, StoredRecord } from "../../store.js";
import type { Row } from "./session.js";
import { never } from "./sql.js";

/** The columns that `recordOf` reads, of a table or alias. */
export function recordColumns(of: string): string {
  return ["`key`", "seq", "epoch", "state", "lane", "due_at", "lease_owner", "lease_until"]
    .map((column) => `${of}.${column}`)
    .join(", ");
}

export function recordOf(row: Row): StoredRecord {
  return {
    key: textOf(row.key),
    seq: Number(row.seq),
    epoch: Number(row.epoch),
    state: textOf(row.state),
    lane: textOf(row.lane),
    dueAt: dueAtOf(row.due_at),
    lease: leaseOf(row),
  };
}

/** The columns that `entryOf` reads, of a table or alias. */
export function entryColumns(of: string): string {
  return ["seq", "at", "token", "kind", "operation", "body"].map((column) => `${of}.${column}`).join(", ");
}

export function entryOf(row: Row): StoredEntry {
  return {
    seq: Number(row.seq),
    at: Number(row.at),
    token: textOf(row.token),
    kind: textOf(row.kind),
    operation: row.operation === null ? null : textOf(row.operation),
    body: textOf(row.body),
  };
}

export function partOf(row: Row): StoredPart {
  return { id: textOf(row.id), body: textOf(row.body) };
}

export function dueAtOf(value: unknown): number | null {
  const dueAt = Number(value);
  return dueAt === never ? null : dueAt;
}

export function leaseOf(row: Row): Lease | null {
  return row.lease_owner === null ? null : { owner: textOf(row.lease_owner), until: Number(row.lease_until) };
}

/** Bytes come as a Buffer, texts as a string. */
export function textOf(value: unknown): string {
  return Buffer.isBuffer(value) ? value.toString() : String(value);
}

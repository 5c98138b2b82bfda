import { randomBytes } from "node:crypto";
import type { Change, StoredRecord } from "../src/store.js";

/** A change that makes a record, or of a record as it was read, with one entry. */
export function change(key: string, from: StoredRecord | null, details: Partial<Change> = {}): Change {
  return {
    key,
    expected: from && { seq: from.seq, epoch: from.epoch },
    token: randomBytes(8).toString("hex"),
    state: "{}",
    lane: "main",
    epoch: from?.epoch ?? 0,
    lease: from === null ? null : "keep",
    dueAt: from === null ? null : "keep",
    entries: [{ kind: "noted", operation: null, body: "{}" }],
    putParts: [],
    deleteParts: [],
    addLabels: [],
    removeLabels: [],
    deleteEntries: [],
    wake: false,
    ...details,
  };
}

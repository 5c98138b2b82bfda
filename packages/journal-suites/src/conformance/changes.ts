import type { Change, Expected, StoredRecord } from "@osbert/journal/store";

/** What a test says of a change; the rest is filled in. */
export type Details = Partial<Omit<Change, "key" | "expected">>;

/** A change that makes a record: not due, not leased, one entry. */
export function newRecord(key: string, details: Details = {}): Change {
  return { ...quiet, key, expected: null, token: newToken(), epoch: 0, dueAt: null, lease: null, ...details };
}

/** A change of a record as it was read: it keeps state, lane, due time and lease, and appends one entry. */
export function changeOf(record: StoredRecord, details: Details = {}): Change {
  const { key, seq, epoch, state, lane } = record;
  return { ...quiet, key, expected: { seq, epoch }, token: newToken(), state, lane, epoch, ...details };
}

/** The same change from another expectation. */
export function expecting(change: Change, expected: Expected | null): Change {
  return { ...change, expected, epoch: expected?.epoch ?? 0 };
}

const quiet = {
  state: "{}",
  lane: "",
  lease: "keep",
  dueAt: "keep",
  entries: [{ kind: "noted", operation: null, body: "{}" }],
  putParts: [],
  deleteParts: [],
  addLabels: [],
  removeLabels: [],
  deleteEntries: [],
  wake: false,
} as const;

let tokens = 0;

function newToken(): string {
  tokens++;
  return `token-${tokens}`;
}

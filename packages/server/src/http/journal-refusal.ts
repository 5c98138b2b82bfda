import type { JournalErrorCode } from "@osbert/journal";

/**
 * What an error of the journal means for whoever asked:
 * - `cannot be kept`: an id or a value of the request is none that a store keeps
 * - `too large`: a value is larger than what is kept, or cannot be written
 * - `crowded`: too much is asked at a time; nothing was decided
 * - `unavailable`: the fault is not theirs, and what they asked may be right later. Which one it is, the log says, and nobody else
 */
export type JournalRefusal = "cannot be kept" | "too large" | "crowded" | "unavailable";

/** Every error of the journal. The table is closed: a new one does not compile before someone has thought about it. */
export const journalRefusals: Readonly<Record<JournalErrorCode, JournalRefusal>> = {
  "invalid-key": "cannot be kept",
  "invalid-change": "cannot be kept",
  "too-large": "too large",
  "not-serialisable": "too large",
  "queue-full": "crowded",
  contention: "crowded",
  "store-unavailable": "unavailable",
  "lease-lost": "unavailable",
  "step-repeated": "unavailable",
  unreadable: "unavailable",
  "owned-elsewhere": "unavailable",
  "schema-newer": "unavailable",
  "schema-missing": "unavailable",
  "invalid-key-ring": "unavailable",
  "key-missing": "unavailable",
  "key-wrong": "unavailable",
  stopped: "unavailable",
};

/** When it is worth asking again. */
export const journalRetryAfterSeconds = { crowded: 1, unavailable: 5 } as const satisfies Partial<
  Record<JournalRefusal, number>
>;

/** Every way in which the journal itself says no. The table is closed: a caller can switch over it. */
export const journalErrors = {
  "invalid-key": "the key of a resource is empty, too long, or holds characters that no store keeps alike",
  "invalid-change": "what a decision asked for cannot be carried out as it stands",
  "not-serialisable": "a value cannot be written as JSON",
  "too-large": "a value is larger than the journal keeps",
  "queue-full": "the resource has as many open operations as it may have",
  contention: "others kept changing the resource until the time for this change was over",
  "store-unavailable": "the store did not answer; what was asked may be repeated",
  "lease-lost": "another engine has taken the resource over; nothing recorded here counts any more",
  "step-repeated": "a name was used for two steps or waits of one operation",
  unreadable: "the stored state of the resource cannot be read; it is set aside until someone mends it",
  "owned-elsewhere": "another process owns the store",
  "schema-newer": "the store was written by a newer Osbert",
  "schema-missing": "the store has not been migrated to the schema that this Osbert needs",
  "invalid-key-ring": "the ring of encryption keys cannot be used as it is",
  "key-missing": "what is stored is encrypted under a key that is not at hand",
  "key-wrong": "the ring has another key under the id of one that the store is encrypted with",
  stopped: "the journal is stopping or has stopped",
} as const;

export type JournalErrorCode = keyof typeof journalErrors;

/** The journal's own errors. The code is the decision, the message is for a person. */
export class JournalError extends Error {
  override readonly name = "JournalError";
  readonly code: JournalErrorCode;

  constructor(code: JournalErrorCode, message: string = journalErrors[code], options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Thrown by a step or an operation: it ends as failed, at once. Trying again would not help. */
export class Permanent extends Error {
  override readonly name = "Permanent";
  /** Facts for whoever reads the outcome; kept with it. */
  readonly details: unknown;

  constructor(message: string, options?: ErrorOptions & { readonly details?: unknown }) {
    super(message, options);
    this.details = options?.details;
  }
}

/** Thrown by a step or an operation: not yet. It is tried again after so long; this does not count as a failure. */
export class RetryLater extends Error {
  override readonly name = "RetryLater";
  /** It is tried again after so long, which is at least `limits.shortestPauseMs`. */
  readonly afterMs: number;

  constructor(message: string, options: ErrorOptions & { readonly afterMs: number }) {
    super(message, options);
    this.afterMs = options.afterMs;
  }
}

/** The reason of an aborted signal: why the operation must stop now. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  /** `ended`: the attempt has ended without waiting for this, because a step failed or took too long. */
  readonly why: "cancelled" | "deadline" | "lease-lost" | "stopping" | "ended";

  constructor(why: Interrupted["why"], message: string) {
    super(message);
    this.why = why;
  }
}

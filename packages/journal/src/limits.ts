/** Bounds of what the journal keeps. They are part of the store contract: every store keeps values up to them. */
export const limits = {
  keyBytes: 512,
  partIdBytes: 512,
  laneBytes: 100,
  labelNameBytes: 64,
  labelValueBytes: 256,
  labels: 16,
  entryKindBytes: 64,
  operationIdBytes: 64,
  ownerBytes: 64,
  /** Of one JSON text: an input, a step's result, a part, the data of a resource. */
  jsonBytes: 1_048_576,
  /** That a decision sees under its prefixes. */
  partsOfADecision: 1_000,
  /** Of a followed value. */
  followedBytes: 524_288,
  /** Values that one journal follows. */
  followed: 1_000,
  stepsOfAnOperation: 1_000,
  /** Of what an operation says of itself in a word: it is carried along with the record. */
  briefBytes: 1_024,
  /** Of a cancellation. */
  reasonBytes: 4_096,
  /** From one look of a poll to the next, and before the next try after `RetryLater`: what asks for less would do nothing but commit. */
  shortestPauseMs: 10,
  /** Of a delay, a deadline or a sleep: a hundred years. */
  longestMs: 100 * 365 * 24 * 60 * 60 * 1_000,
} as const;

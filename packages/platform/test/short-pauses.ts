import type { Pauses } from "../src/operations/pauses.js";

/** Everything that a real platform waits minutes for, in milliseconds. */
export const shortPauses: Pauses = {
  busy: { firstMs: 20, longestMs: 50 },
  notSent: { firstMs: 20, longestMs: 50 },
  lost: { firstMs: 20, longestMs: 50 },
  deleting: { firstMs: 20, longestMs: 50 },
  failedDelete: [20, 20, 20],
  recreateMs: 2_000,
  lateMs: 150,
  deadlineMs: 600_000,
  polling: { firstMs: 20, factor: 1, longestMs: 20 },
};

import { expect, test } from "vitest";
import { agesOf, pruning, type Retention } from "../src/decisions/retention.js";
import type { Outcome } from "../src/operation.js";
import type { StoredEntry } from "../src/store.js";

const retention: Retention = { succeededMs: 10, failedMs: 30, cancelledMs: 20, notesMs: 40 };
const dayMs = 24 * 60 * 60 * 1000;

/** `[at, kind, operation]`; the number is the place. A settled entry names its outcome as its kind. */
function entries(
  ...lines: readonly (readonly [at: number, kind: string, operation?: string])[]
): readonly StoredEntry[] {
  return lines.map(([at, kind, operation = null], index) => {
    const outcome = ["succeeded", "failed", "cancelled"].includes(kind);
    const payload = outcome ? { kind: kind as Outcome["kind"] } : kind === "accepted" ? { part: null } : null;
    const body = JSON.stringify({ actor: { type: "user", subject: "ann" }, payload });
    return { seq: index + 1, at, token: "t", kind: outcome ? "settled" : kind, operation, body };
  });
}

test.each([
  ["succeeded", 110],
  ["failed", 130],
  ["cancelled", 120],
  ["note", 140],
] as const)("what %s at 100 may go at %i", (what, at) => {
  expect(agesOf(retention, what, 100)).toBe(at);
});

test("for ever is no time", () => {
  expect(agesOf({ ...retention, failedMs: null }, "failed", 100)).toBe(null);
});

test("an operation's entries go together, by the age of its end", () => {
  const all = entries(
    [0, "accepted", "a"],
    [1, "accepted", "b"],
    [2, "step", "a"],
    [5, "succeeded", "a"],
    [8, "failed", "b"],
  );
  expect(pruning(all, true, retention, 14)).toEqual({ delete: [], nextAt: 15 });
  expect(pruning(all, true, retention, 15)).toEqual({ delete: [1, 3, 4], nextAt: 38 });
  expect(pruning(all, true, retention, 38)).toEqual({ delete: [1, 2, 3, 4, 5], nextAt: null });
});

test("an open operation loses nothing, however old it is", () => {
  const all = entries([0, "accepted", "a"], [1, "step", "a"], [2, "noted"]);
  expect(pruning(all, true, retention, 1_000_000)).toEqual({ delete: [3], nextAt: null });
});

test("notes go by their own age, and what tells of pruning goes at the next one", () => {
  const all = entries([0, "noted"], [5, "pruned"], [10, "noted"]);
  expect(pruning(all, true, retention, 40)).toEqual({ delete: [1, 2], nextAt: 50 });
});

test("a note about an operation goes with the operation", () => {
  const all = entries([0, "accepted", "a"], [1, "succeeded", "a"], [2, "noted", "a"]);
  expect(pruning(all, true, retention, 11)).toEqual({ delete: [1, 2, 3], nextAt: null });
});

test("nothing to keep and nothing to remove needs no further look", () => {
  expect(pruning([], true, retention, 0)).toEqual({ delete: [], nextAt: null });
  const forEver = { succeededMs: null, failedMs: null, cancelledMs: null, notesMs: null };
  expect(pruning(entries([0, "noted"], [1, "succeeded", "a"]), true, forEver, 99)).toEqual({
    delete: [],
    nextAt: null,
  });
});

test("what lies behind the run that was looked at is looked at soon, once something made room", () => {
  const all = entries([0, "noted"], [30, "noted"]);
  expect(pruning(all, false, retention, 40)).toEqual({ delete: [1], nextAt: 40 });
  expect(pruning(all, false, { ...retention, notesMs: null }, 40).nextAt).toBeLessThanOrEqual(40 + dayMs);
});

test("a bare record goes when it has been one for long enough, however often it was looked at", () => {
  const withGone = { ...retention, goneMs: 100 };
  const dying = entries([5, "pruned"], [8, "accepted", "a"], [20, "succeeded", "a"]);
  expect(pruning(dying, true, withGone, 30, true)).toEqual({ delete: [1, 2, 3], nextAt: 130 });
  expect(pruning(entries([30, "pruned"]), true, withGone, 129, true)).toEqual({ delete: [], nextAt: 130 });
  expect(pruning(entries([30, "pruned"], [129, "pruned"]), true, withGone, 130, true).delete).toEqual([1, 2]);
});

test("an operation whose entries are needed stays whole, and is looked at a day later", () => {
  const all = entries(
    [0, "accepted", "a"],
    [1, "step", "a"],
    [2, "failed", "a"],
    [3, "accepted", "b"],
    [4, "failed", "b"],
  );
  expect(pruning(all, true, retention, 50, false, new Set([2]))).toEqual({ delete: [4, 5], nextAt: 50 + dayMs });
  expect(pruning(all, true, retention, 50).delete).toEqual([1, 2, 3, 4, 5]);
});

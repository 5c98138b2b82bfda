import { expect, test } from "vitest";
import { correctFailures } from "../src/decisions/correct-failures.js";
import { dependents } from "../src/decisions/dependence.js";
import { intentBrief } from "../src/decisions/intent-brief.js";
import type { QueuedOperation } from "../src/decisions/queue-state.js";
import type { FailedIntent } from "../src/records/instance-record.js";

function queued(
  id: string,
  paths: readonly string[],
  more: { after?: readonly string[]; plan?: string } = {},
): QueuedOperation {
  const brief = { op: "update", summary: id, paths, by: "anna", asked: "", ...more } as const;
  return {
    id,
    kind: "update",
    part: null,
    acceptedAt: 0,
    brief,
    held: false,
    started: false,
    isFixed: false,
    sent: false,
    cancelled: false,
  };
}

const failed = (paths: readonly string[], plan?: string) => ({ operation: "failed", paths, plan });

test.each([
  ["other paths go on", failed(["/parameters/a"]), [queued("1", ["/parameters/b"])], []],
  ["E10-6: the same path goes on", failed(["/parameters/a"]), [queued("1", ["/parameters/a"])], []],
  ["a path below waits", failed(["/parameters/a"]), [queued("1", ["/parameters/a/x"])], ["1"]],
  ["a path above waits", failed(["/parameters/a/x"]), [queued("1", ["/parameters/a"])], ["1"]],
  ["a name that only begins alike goes on", failed(["/parameters/a"]), [queued("1", ["/parameters/ab"])], []],
  ["what names it waits", failed(["/parameters/a"]), [queued("1", ["/parameters/b"], { after: ["failed"] })], ["1"]],
  [
    "what depends on what waits, waits",
    failed(["/parameters/a"]),
    [
      queued("1", ["/parameters/a/x"]),
      queued("2", ["/parameters/a/x/y"]),
      queued("3", ["/parameters/c"], { after: ["2"] }),
    ],
    ["1", "2", "3"],
  ],
  [
    "behind one with a newer will, others count on that",
    failed(["/parameters/a"]),
    [queued("1", ["/parameters/a"]), queued("2", ["/parameters/a/x"])],
    [],
  ],
  [
    "E10-10: what is for the plan waits",
    failed(["/plan"], "large"),
    [queued("1", ["/parameters/a"], { plan: "large" })],
    ["1"],
  ],
  [
    "what is for another plan goes on",
    failed(["/plan"], "large"),
    [queued("1", ["/parameters/a"], { plan: "small" })],
    [],
  ],
  ["too many paths to name: all depend on it", failed(["*"]), [queued("1", ["/parameters/a"])], ["1"]],
  ["too many paths to name: it depends on all", failed(["/parameters/a"]), [queued("1", ["*"])], ["1"]],
] as const)("dependence: %s", (_what, missing, queue, expected) => {
  expect(dependents(missing, queue).map(({ id }) => id)).toEqual(expected);
});

test("a correction is what touches a failed path, above or below", () => {
  const failure = { operation: "1", paths: ["/parameters/a/x"] } as unknown as FailedIntent;
  const policy = { onFailure: "auto", concurrency: "queue", orphans: "mitigate" } as const;
  const left = (path: string) =>
    correctFailures({ failures: [failure], policy, usable: true }, [path], { queue: [], holds: {} }).failures;
  expect(left("/parameters/a")).toEqual([]);
  expect(left("/parameters/a/x/y")).toEqual([]);
  expect(left("/parameters/b")).toEqual([failure]);
});

test("a brief always fits, and what does not is left out so that it rather waits", () => {
  const long = "😀".repeat(2_000);
  const paths = Array.from({ length: 100 }, (_, index) => `/parameters/${long}${index}`);
  const brief = intentBrief({
    op: "update",
    summary: long,
    paths,
    by: long,
    asked: "hash",
    plan: long,
    after: ["1-a"],
  });
  expect(Buffer.byteLength(JSON.stringify(brief))).toBeLessThanOrEqual(1_024);
  expect(brief).toMatchObject({ paths: ["*"], after: ["1-a"] });
  const hostile = "\u0001".repeat(2_000);
  const after = Array.from({ length: 5 }, () => `123456789-${"a".repeat(32)}`);
  const heldFor = { kind: "lock", message: hostile } as const;
  const worst = intentBrief({
    op: "update",
    summary: hostile,
    paths,
    by: hostile,
    asked: "a".repeat(22),
    plan: hostile,
    after,
    heldFor,
  });
  expect(Buffer.byteLength(JSON.stringify(worst))).toBeLessThanOrEqual(1_024);
});

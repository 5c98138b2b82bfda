import { expect, test } from "vitest";
import { type Evidence, problemsOf } from "../src/kill-me/problems.js";
import { newFolder, startProgram } from "./program.js";

test("kill-me kills a broker in the middle of its work, and in the end every cluster is there", {
  timeout: 120_000,
}, async () => {
  const program = startProgram("kill-me/main.ts", await newFolder(), { args: ["--kills", "3"] });
  expect(await program.ended, program.printed()).toBe(0);
  expect(program.printed().match(/^kill \d: .* then the broker was killed/gm)).toHaveLength(3);
  expect(program.printed()).toContain("3 kills, 3 clusters asked for, 3 there");
});

test("kill-me refuses a number of kills that is none", async () => {
  const program = startProgram("kill-me/main.ts", await newFolder(), { args: ["--kills", "many"] });
  expect(await program.ended).toBe(1);
  expect(program.printed()).toContain("--kills must be a number from 1 to 1000");
});

const order = { cluster: "/a", call: "order", outcome: "done" } as const;
const good: Evidence = {
  // Called twice before it was recorded: that may be.
  calls: [order, order, { ...order, call: "install" }],
  snapshots: [
    { recorded: [], calls: 1 },
    { recorded: ["/a: order"], calls: 2 },
    { recorded: ["/a: order", "/a: install"], calls: 3 },
  ],
  clusters: [{ name: "a", wanted: 1, machines: 1, state: "succeeded" }],
};

test.each<[string, Partial<Evidence>, string]>([
  ["a step that runs again after it was recorded", { calls: [...good.calls, order] }, "/a: order: ran again"],
  [
    "a step that is recorded twice",
    { snapshots: [{ recorded: ["/a: order", "/a: order"], calls: 3 }] },
    "recorded twice",
  ],
  [
    "a machine too many",
    { clusters: [{ name: "a", wanted: 1, machines: 2, state: "succeeded" }] },
    "2 machines instead of 1",
  ],
  ["a cluster that is not there", { clusters: [{ name: "a", wanted: 1, machines: 1, state: "failed" }] }, '"failed"'],
])("kill-me notices %s", (_what, bad, sentence) => {
  expect(problemsOf(good)).toEqual([]);
  expect(problemsOf({ ...good, ...bad })).toEqual([expect.stringContaining(sentence)]);
});

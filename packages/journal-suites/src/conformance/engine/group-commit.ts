import assert from "node:assert/strict";
import { accept, type EngineTests, numbered } from "../story.js";

/** J12: concurrent appends share a commit. */
export const groupCommitTests: EngineTests = {
  "J12: 200 operations accepted at once need far fewer than 200 durable commits": async (story) => {
    const process = await story.process({ kinds: { job: { run: async () => 1 } } });
    const before = await story.durableCommits();
    await Promise.all(numbered(200, "k").map((key) => accept(process, key, { kind: "job" })));
    const commits = (await story.durableCommits()) - before;
    assert.ok(commits > 0, "nothing was counted");
    assert.ok(commits <= 50, `${commits} durable commits`);
    const found = await process.journal.find({ prefix: "k", limit: 1_000 });
    assert.equal(found.items.filter(({ open }) => open.length === 1).length, 200);
  },

  "J12: operations that run at once share the commits of their steps and ends": async (story) => {
    const run = async (operation: { step(name: string, work: () => number): Promise<number> }) =>
      operation.step("one", () => 1);
    const process = await story.engine({ kinds: { job: { run } }, laneConcurrency: 128 });
    const before = await story.durableCommits();
    const keys = numbered(100, "k");
    await Promise.all(keys.map((key) => accept(process, key, { kind: "job" })));
    await story.until("all have ended", () => process.events.filter(({ kind }) => kind === "settled").length === 100);
    const commits = (await story.durableCommits()) - before;
    assert.ok(commits > 0, "nothing was counted");
    assert.ok(commits <= 150, `${commits} durable commits for 300 changes`);
  },
};

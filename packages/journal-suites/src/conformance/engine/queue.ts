import assert from "node:assert/strict";
import { job, ManualJobs } from "../manual-jobs.js";
import { accept, acceptAll, bob, type EngineTests, type Process, read } from "../story.js";

/** A resource as a queue of changes: what is told of those that wait, and what can be done to them. */
export const queueTests: EngineTests = {
  "queue: what is open is told with its state": async (story) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind(), deaf: jobs.kind({ deaf: true }) };
    const process = await story.engine({ kinds });
    process.journal.pauseLanes(new Set(["paused"]));
    await acceptAll(process, "k", [
      { kind: "deaf", input: "running" },
      job("held", { held: true }),
      job("queued"),
      job("paused", { lane: "paused" }),
      job("waiting", { delayMs: 60_000 }),
    ]);
    await story.until("the first one runs", () => jobs.runs("running"));
    assert.deepEqual(await statesOf(process, "k"), ["running", "held", "queued", "paused", "waiting"]);
    const [first] = (await read(process, "k")).open;
    assert.equal((await process.journal.operation("k", first?.id ?? ""))?.open?.state, "running");
    await process.journal.cancel("k", first?.id ?? "", "not wanted", bob);
    assert.deepEqual((await statesOf(process, "k"))[0], "cancelling");
    const id = await accept(process, "other", job("a", { lane: "paused" }));
    assert.equal((await process.journal.operation("other", id))?.open?.state, "paused");
    const [work] = (await process.journal.withWork({ lane: "paused" })).items;
    assert.deepEqual([work?.key, work?.open[0]?.state], ["other", "paused"]);
    process.journal.pauseLanes(new Set());
    await story.until("it runs", () => jobs.running.includes("a"));
    assert.deepEqual(await statesOf(process, "other"), ["running"]);
  },
};

async function statesOf(process: Process, key: string): Promise<readonly string[]> {
  return (await read(process, key)).open.map(({ state }) => state);
}

import assert from "node:assert/strict";
import { Interrupted } from "@osbert/journal";
import { job, ManualJobs } from "../manual-jobs.js";
import { accept, change, type EngineTests, graceMs, isJournalError, leaseMs, read, storyOf } from "../story.js";

/** Graceful and abrupt ends of a process. */
export const stoppingTests: EngineTests = {
  "stop: what runs may end, nothing new is begun": async (story) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind() };
    const process = await story.engine({ kinds });
    const other = await story.process({ kinds });
    const [a, b] = [await accept(process, "k", job("a")), await accept(process, "k", job("b"))];
    await story.until("a runs", () => jobs.runs("a"));
    let stopped = false;
    const stopping = process.journal.stop({ drainMs: 60_000 }).then(() => {
      stopped = true;
    });
    await accept(other, "k2", job("c"));
    await story.pass(1_000);
    assert.deepEqual([stopped, jobs.begun], [false, ["a"]]);
    jobs.job("a").finish("done");
    await story.until("it has stopped", () => stopped);
    await stopping;
    assert.deepEqual((await other.journal.operation("k", a))?.outcome, { kind: "succeeded", result: "done" });
    assert.equal((await other.journal.operation("k", b))?.status, "open");
    assert.deepEqual(jobs.begun, ["a"]);
    assert.equal((await story.record(other, "k")).lease, null);
    await assert.rejects(
      process.journal.transact("k", () => ({ result: 1 }), { by: { actor: { type: "user", subject: "u" } } }),
      isJournalError("stopped"),
    );
  },

  "stop: a lease is kept while its operation is waited for": async (story) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind() };
    const process = await story.engine({ kinds });
    const other = await story.engine({ kinds });
    const id = await accept(process, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    const stopping = process.journal.stop({ drainMs: 10 * leaseMs });
    await story.pass(4 * leaseMs);
    assert.deepEqual(jobs.begun, ["a"]);
    jobs.job("a").finish("done");
    await stopping;
    assert.deepEqual(await story.ends(other, "k", id), { kind: "succeeded", result: "done" });
    assert.deepEqual(jobs.begun, ["a"]);
  },

  "stop: what does not end in time is interrupted, handed back, and run elsewhere at once": async (story) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind() };
    const process = await story.engine({ kinds });
    const other = await story.engine({ kinds });
    const id = await accept(process, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    const { signal } = jobs.job("a").operation;
    const stopping = process.journal.stop({ drainMs: 2_000 });
    await story.pass(2_000);
    const reason: unknown = signal.reason;
    assert.ok(reason instanceof Interrupted && reason.why === "stopping");
    const interruptedAt = story.now;
    await stopping;
    await story.until("a runs again", () => jobs.begun.length === 2 && jobs.runs("a"));
    assert.ok(story.now - interruptedAt < leaseMs / 2, `took ${story.now - interruptedAt} ms`);
    jobs.job("a").finish("done elsewhere");
    assert.deepEqual(await story.ends(other, "k", id), { kind: "succeeded", result: "done elsewhere" });
    assert.deepEqual(await storyOf(other, "k", id), ["accepted", "settled"]);
  },

  "stop: a function that does not listen is given up, and run elsewhere at once": async (story) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind({ deaf: true }) };
    const process = await story.engine({ kinds });
    const other = await story.engine({ kinds });
    const id = await accept(process, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    const late = jobs.job("a");
    let stopped = false;
    void process.journal.stop({ drainMs: 2_000 }).then(() => {
      stopped = true;
    });
    await story.pass(2_000 + graceMs);
    await story.until("it has stopped", () => stopped);
    await story.until("a runs again", () => jobs.begun.length === 2);
    late.finish("too late");
    await story.quiet();
    assert.equal((await other.journal.operation("k", id))?.status, "open");
    jobs.job("a").finish("in time");
    assert.deepEqual(await story.ends(other, "k", id), { kind: "succeeded", result: "in time" });
  },

  "stop: what was being claimed is handed back, too": async (story) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind() };
    const process = await story.engine({ kinds });
    const other = await story.process({ kinds });
    // The claim that is held must be the one that finds it, not one that was under way before.
    await story.quiet();
    const answer = process.store.hold(["claim"], "after");
    const id = await accept(other, "k", job("a"));
    await story.until("it is claimed", async () => (await story.record(other, "k")).lease !== null);
    await other.journal.start();
    const stopping = process.journal.stop({ drainMs: 1_000 });
    await story.quiet();
    answer.letGo();
    await story.pass(1_000 + graceMs);
    await stopping;
    const stoppedAt = story.now;
    await story.until("a runs elsewhere", () => jobs.runs("a"));
    assert.ok(story.now - stoppedAt < leaseMs / 2, `took ${story.now - stoppedAt} ms`);
    jobs.job("a").finish();
    await story.ends(other, "k", id);
  },

  "stop: what is accepted while it stops is kept, and left to others": async (story) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind() };
    const process = await story.engine({ kinds });
    const other = await story.engine({ kinds });
    await accept(process, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    const stopping = process.journal.stop({ drainMs: 60_000 });
    await story.quiet();
    await accept(process, "k2", job("b"));
    await accept(process, "k", job("c"));
    await story.until("b runs elsewhere", () => jobs.runs("a", "b"));
    jobs.job("a").finish();
    await stopping;
    await story.until("c runs elsewhere", () => jobs.runs("b", "c"));
    for (const name of jobs.running) jobs.job(name).finish();
    await story.until("all have ended", async () => (await read(other, "k")).open.length === 0);
  },

  "stop: it takes no time with nothing to do, may be asked for twice, and calls the store no more": async (story) => {
    const process = await story.engine({ kinds: {} });
    await change(process, "k", { data: 1 });
    await process.journal.stop();
    await process.journal.stop();
    await process.journal.kill();
    const calls = process.store.calls.length;
    await story.pass(5 * leaseMs);
    assert.equal(process.store.calls.length, calls);
    assert.equal(process.store.calls.at(-1)?.method, "close");
  },

  "kill: nothing is recorded afterwards": async (story) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind({ deaf: true }) };
    const process = await story.engine({ kinds });
    const other = await story.process({ kinds });
    const id = await accept(process, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    await process.journal.kill();
    const calls = process.store.calls.length;
    jobs.job("a").finish("too late");
    await story.pass(5 * leaseMs);
    assert.equal((await other.journal.operation("k", id))?.status, "open");
    assert.equal(process.store.calls.length, calls);
  },

  "start: one that failed may be tried again": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.process({ kinds: { job: jobs.kind() } });
    await accept(process, "k", job("a"));
    process.store.fail("reap", "before");
    let started = false;
    void process.journal
      .start()
      .catch(() => process.journal.start())
      .then(
        () => {
          started = true;
        },
        () => undefined,
      );
    await story.until("it has started", () => started);
    await story.until("a runs", () => jobs.runs("a"));
    await story.pass(3 * leaseMs);
    assert.deepEqual(jobs.begun, ["a"], "its leases are renewed");
    await assert.rejects(process.journal.start(), isJournalError("stopped"));
  },
};

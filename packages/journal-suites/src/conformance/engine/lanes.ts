import assert from "node:assert/strict";
import type { Operation, OperationKind } from "@osbert/journal";
import { job, ManualJobs } from "../manual-jobs.js";
import { accept, acceptAll, bob, type EngineTests, numbered, read } from "../story.js";

/** Bounded concurrency, over all and per class of work. */
export const lanesTests: EngineTests = {
  "lanes: one that hangs fills its own share and leaves the others theirs": async (story) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind({ lane: (input) => String(input).split(" ")[0] ?? "" }) };
    const process = await story.engine({ kinds, concurrency: 6, laneConcurrency: 2 });
    await Promise.all(numbered(10, "hanging ").map((name) => accept(process, name, job(name))));
    await story.until("its share is taken", () => jobs.running.length === 2);
    const quick = numbered(10, "quick ");
    const ids = await Promise.all(quick.map((name) => accept(process, name, job(name))));
    for (let ended = 0; ended < quick.length; ) {
      await story.until("a quick one runs", () => jobs.running.some((name) => name.startsWith("quick")));
      assert.ok(jobs.running.filter((name) => name.startsWith("quick")).length <= 2);
      for (const name of jobs.running.filter((running) => running.startsWith("quick"))) {
        jobs.job(name).finish();
        ended++;
      }
    }
    for (const [index, name] of quick.entries()) await story.ends(process, name, ids[index] ?? "");
    assert.equal(jobs.running.length, 2);
  },

  "lanes: no more run at a time than may, and all get their turn": async (story) => {
    let [running, most] = [0, 0];
    const run = async (operation: Operation) => {
      most = Math.max(most, ++running);
      await operation.step("one", () => new Promise((resolve) => setImmediate(resolve)));
      running--;
    };
    const process = await story.process({ kinds: { job: { run } }, concurrency: 3, laneConcurrency: 3 });
    const keys = numbered(20, "k");
    const ids = await Promise.all(keys.map((key) => accept(process, key, { kind: "job" })));
    await process.journal.start();
    for (const [index, key] of keys.entries()) await story.ends(process, key, ids[index] ?? "");
    // That it gets as far as the bound depends on how fast the store is.
    assert.ok(most <= 3, `${most} ran at a time`);
    await story.until("nothing runs", () => process.journal.running === 0);
  },

  "lanes: places that become free at the same time are all taken again": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() }, concurrency: 8, laneConcurrency: 2 });
    await Promise.all(numbered(10, "k").map((key) => accept(process, key, job(key))));
    for (let round = 0; round < 5; round++) {
      await story.until("two run", () => jobs.running.length === 2);
      for (const name of jobs.running) jobs.job(name).finish();
    }
    await story.until("all have begun", () => jobs.begun.length === 10);
  },

  "lanes: shared operations of one resource are bounded, too, and all run": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({
      kinds: { job: jobs.kind({ mode: "shared" }) },
      concurrency: 8,
      laneConcurrency: 3,
    });
    await acceptAll(
      process,
      "k",
      numbered(10).map((name) => job(name)),
    );
    const seen: number[] = [];
    for (let ended = 0; ended < 10; ended++) {
      await story.until("as many run as may", () => jobs.running.length === Math.min(3, 10 - ended));
      seen.push(jobs.running.length);
      jobs.job(jobs.running[0] ?? "").finish();
    }
    assert.deepEqual(seen, [3, 3, 3, 3, 3, 3, 3, 3, 2, 1]);
    await story.until("all have ended", async () => (await read(process, "k")).open.length === 0);
  },

  "lanes: a shared operation runs as soon as its own lane has room, whatever lanes those beside it wait for": async (
    story,
  ) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind({ mode: "shared", lane: (input) => String(input).split(" ")[0] ?? "" }) };
    const process = await story.engine({ kinds, concurrency: 8, laneConcurrency: 1 });
    await accept(process, "other", job("red 1"));
    await accept(process, "another", job("blue 1"));
    await story.until("both run", () => jobs.runs("red 1", "blue 1"));
    await acceptAll(process, "k", [job("green 1"), job("red 2"), job("blue 2")]);
    await story.until("green runs", () => jobs.runs("red 1", "blue 1", "green 1"));
    jobs.job("red 1").finish();
    await story.until("red 2 runs", () => jobs.runs("blue 1", "green 1", "red 2"));
    jobs.job("blue 1").finish();
    await story.until("blue 2 runs", () => jobs.runs("green 1", "red 2", "blue 2"));
  },

  "lanes: a shared operation begins although one before it waits for a lane without room, whoever accepted it": async (
    story,
  ) => {
    const jobs = new ManualJobs();
    const kinds = inTwoLanes(jobs);
    const front = await story.process({ kinds });
    const engine = await story.process({ kinds });
    engine.journal.pauseLanes(new Set(["red"]));
    await acceptAll(front, "k1", [job("red 1"), job("blue 1")]);
    await engine.journal.start();
    await story.until("blue runs", () => jobs.runs("blue 1"));
    await acceptAll(engine, "k2", [job("red 2"), job("blue 2")]);
    await story.until("blue runs at once", () => jobs.runs("blue 1", "blue 2"));
    await acceptAll(front, "k3", [job("red 3"), job("blue 3")]);
    await story.until("and so does what comes later", () => jobs.runs("blue 1", "blue 2", "blue 3"));
    for (const name of jobs.running) jobs.job(name).finish();
    await story.until("they end", () => jobs.running.length === 0);
    const waiting = (await front.journal.withWork({ lane: "red" })).items.map(({ key }) => key);
    assert.deepEqual(waiting, ["k1", "k2", "k3"], "what waits for a lane is found there");
    engine.journal.pauseLanes(new Set());
    await story.until("the others have their turn", () => jobs.runs("red 1", "red 2", "red 3"));
  },

  "lanes: a shared operation begins although the claim that passed it over has itself filled the lane before it":
    async (story) => {
      const jobs = new ManualJobs();
      const process = await story.process({ kinds: inTwoLanes(jobs), concurrency: 8, laneConcurrency: 1 });
      await accept(process, "a", job("red 1"));
      await acceptAll(process, "z", [job("red 2"), job("blue 1")]);
      await process.journal.start();
      await story.until("blue runs, too", () => jobs.runs("red 1", "blue 1"));
      jobs.job("red 1").finish();
      await story.until("the other has its turn", () => jobs.runs("blue 1", "red 2"));
    },

  "lanes: a poll looks at its times although an operation beside it waits for a lane without room": async (story) => {
    const jobs = new ManualJobs();
    let looks = 0;
    const poll: OperationKind = {
      mode: "shared",
      lane: "blue",
      run: (operation) => operation.poll("answer", () => (++looks < 4 ? undefined : "seen"), { everyMs: 5_000 }),
    };
    const process = await story.process({ kinds: { ...inTwoLanes(jobs), poll } });
    process.journal.pauseLanes(new Set(["red"]));
    await process.journal.start();
    const id = await accept(process, "k", { kind: "poll" });
    await story.until("it has looked", () => looks === 1);
    await accept(process, "k", job("red 1"));
    for (let look = 2; look <= 4; look++) {
      // A little more than its time: it is found out by looking around.
      await story.pass(7_000);
      await story.until(`it has looked ${look} times`, () => looks >= look);
    }
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: "seen" });
    assert.deepEqual(jobs.begun, []);
  },

  "J8: a cancel by another process is heard although the resource is found in a lane without room": async (story) => {
    const jobs = new ManualJobs();
    const kinds = inTwoLanes(jobs);
    const runner = await story.process({ kinds });
    const other = await story.process({ kinds });
    runner.journal.pauseLanes(new Set(["red"]));
    await runner.journal.start();
    await accept(runner, "k", job("blue 1"));
    await story.until("blue runs", () => jobs.runs("blue 1"));
    await accept(other, "k", job("red 1"));
    const id = await accept(other, "k", job("blue 2"));
    await story.until("both run", () => jobs.runs("blue 1", "blue 2"));
    jobs.job("blue 1").finish();
    await story.until("the first has ended", () => jobs.runs("blue 2"));
    await story.quiet();
    assert.equal((await story.record(runner, "k")).lane, "red");
    assert.equal(await other.journal.cancel("k", id, "not needed", bob), true);
    assert.deepEqual(await story.ends(other, "k", id), { kind: "cancelled", reason: "not needed" });
    assert.deepEqual(jobs.running, []);
  },

  "J10: looking around for what claims pass over reads nothing of what waits in one lane alone": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.process({ kinds: inTwoLanes(jobs) });
    process.journal.pauseLanes(new Set(["red"]));
    await process.journal.start();
    await Promise.all(numbered(50, "k").map((key) => accept(process, key, job(`red ${key}`))));
    await story.quiet();
    const from = process.store.calls.length;
    for (let second = 0; second < 30; second++) await story.pass(1_000);
    const calls = process.store.calls.slice(from);
    for (const { method, answer } of calls) if (method === "find") assert.deepEqual(answer, []);
    assert.ok(calls.filter(({ method }) => method === "find").length <= 10);
    assert.deepEqual(
      calls.filter(({ method }) => method === "read" || method === "commit"),
      [],
    );
  },

  "lanes: work that found no room is taken up by an engine that has some": async (story) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind() };
    const full = await story.engine({ kinds, concurrency: 1 });
    await accept(full, "k1", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    await accept(full, "k2", job("b"));
    await story.engine({ kinds });
    await story.until("b runs, too", () => jobs.runs("a", "b"));
  },

  "lanes: an operation's lane is its kind's, its input's, or its own": async (story) => {
    const process = await story.process({
      kinds: {
        plain: { run: async () => 1 },
        named: { run: async () => 1, lane: "database" },
        asked: { run: async () => 1, lane: (input) => `service ${String(input)}` },
      },
    });
    await acceptAll(process, "k", [
      { kind: "plain" },
      { kind: "named" },
      { kind: "asked", input: 7 },
      { kind: "named", lane: "own" },
    ]);
    const { open } = await read(process, "k");
    assert.deepEqual(
      open.map(({ lane }) => lane),
      ["plain", "database", "service 7", "own"],
    );
  },
};

/** Shared operations, each in the lane that its name begins with. */
function inTwoLanes(jobs: ManualJobs): { readonly job: OperationKind } {
  return { job: jobs.kind({ mode: "shared", lane: (input) => String(input).split(" ")[0] ?? "" }) };
}

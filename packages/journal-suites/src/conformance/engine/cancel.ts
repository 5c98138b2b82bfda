import assert from "node:assert/strict";
import type { Operation } from "@osbert/journal";
import { Interrupted } from "@osbert/journal";
import { job, ManualJobs } from "../manual-jobs.js";
import {
  accept,
  acceptAll,
  ann,
  bob,
  type EngineTests,
  entriesOf,
  gate,
  graceMs,
  leaseMs,
  numbered,
  type Process,
  read,
  type Story,
  storyOf,
} from "../story.js";

const cancelled = { kind: "cancelled", reason: "not wanted" };

/** J8: cancel. */
export const cancelTests: EngineTests = {
  "J8: an operation that waits its turn ends at once when it is cancelled, without having run": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const [a = "", b = "", c = ""] = await acceptAll(process, "k", [job("a"), job("b"), job("c")]);
    await story.until("a runs", () => jobs.runs("a"));
    assert.equal(await process.journal.cancel("k", b, "not wanted", bob), true);
    assert.deepEqual((await process.journal.operation("k", b))?.outcome, cancelled);
    jobs.job("a").finish();
    await story.until("c runs", () => jobs.runs("c"));
    jobs.job("c").finish();
    await story.ends(process, "k", c);
    assert.deepEqual(jobs.begun, ["a", "c"]);
    assert.deepEqual(await storyOf(process, "k", b), ["accepted", "cancel requested", "settled"]);
    assert.deepEqual(await storyOf(process, "k", a), ["accepted", "settled"]);
  },

  "J8: an operation that sleeps ends at once when it is cancelled": async (story) => {
    const run = async (operation: Operation) => operation.sleep("long", 3_600_000);
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.rests(process, "k", id);
    assert.equal(await process.journal.cancel("k", id, "not wanted", bob), true);
    assert.deepEqual((await process.journal.operation("k", id))?.outcome, cancelled);
  },

  "J8: what is cancelled while its engine stands still for longer than its lease is told, and nothing begins beside it":
    async (story) => {
      const jobs = new ManualJobs();
      const kinds = { job: jobs.kind({ deaf: true }) };
      const engine = await story.engine({ kinds });
      const desk = await story.process({ kinds });
      const a = await accept(engine, "k", job("a"));
      await story.until("a runs", () => jobs.runs("a"));
      const { signal } = jobs.job("a").operation;
      const ice = engine.store.hold();
      await story.clock.jump(leaseMs + 1_000);
      const replaces = () => ({
        result: null,
        change: { cancel: [{ operation: a, reason: "not wanted" }], accept: [job("b")] },
      });
      await desk.journal.transact("k", replaces, { by: bob });
      ice.letGo();
      await story.until("a is told", () => signal.aborted);
      assert.ok(signal.reason instanceof Interrupted && signal.reason.why === "cancelled");
      assert.ok(jobs.runs("a"), `${jobs.running.join(" and ")} run at once`);
      jobs.job("a").finish();
      await story.until("b runs", () => jobs.runs("b"));
      assert.deepEqual((await desk.journal.operation("k", a))?.outcome, cancelled);
    },

  "J8: a running operation is told at once, ends as cancelled, and records nothing more": async (story) => {
    const [first, second, afterwards] = [gate(), gate(), gate<string>()];
    let signal: AbortSignal | undefined;
    const run = async (operation: Operation) => {
      signal = operation.signal;
      await operation.step("before", () => 1);
      first.open();
      await second.passed;
      operation.describe("still at it");
      await operation
        .step("after", () => 2)
        .then(
          () => afterwards.open("the step was run"),
          () => afterwards.open("the step was refused"),
        );
      return "finished all the same";
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await first.passed;
    await story.quiet();
    assert.equal(await process.journal.cancel("k", id, "not wanted", bob), true);
    const reason: unknown = signal?.reason;
    assert.ok(reason instanceof Interrupted && reason.why === "cancelled" && reason.message === "not wanted");
    second.open();
    assert.deepEqual(await story.ends(process, "k", id), cancelled);
    assert.equal(await afterwards.passed, "the step was refused");
    assert.deepEqual(await storyOf(process, "k", id), ["accepted", "step", "cancel requested", "settled"]);
    assert.equal((await read(process, "k")).last?.outcome, "cancelled");
  },

  "J8: a step that runs while its operation is cancelled is not recorded": async (story) => {
    const door = gate();
    const run = async (operation: Operation) => operation.step("effect", () => door.passed);
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.until("it runs", () => process.journal.running === 1);
    await process.journal.cancel("k", id, "not wanted", bob);
    door.open();
    assert.deepEqual(await story.ends(process, "k", id), cancelled);
    assert.deepEqual(await storyOf(process, "k", id), ["accepted", "cancel requested", "settled"]);
  },

  "J8: an operation in another engine's hands is told there, and ends as cancelled": async (story) => {
    const jobs = new ManualJobs();
    const runner = await story.engine({ kinds: { job: jobs.kind() } });
    const other = await story.process({ kinds: { job: jobs.kind() } });
    const id = await accept(runner, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    await cancelsElsewhere(story, jobs, other, id);
  },

  "J8: a cancel from another process reaches an operation that fills its lane": async (story) => {
    const jobs = new ManualJobs();
    const runner = await story.engine({ kinds: { job: jobs.kind() }, concurrency: 4, laneConcurrency: 1 });
    const other = await story.process({ kinds: { job: jobs.kind() } });
    const id = await accept(runner, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    await cancelsElsewhere(story, jobs, other, id);
  },

  "J8: a cancel from another process reaches an engine that has no room left": async (story) => {
    const jobs = new ManualJobs();
    const runner = await story.engine({ kinds: { job: jobs.kind() }, concurrency: 1 });
    const other = await story.process({ kinds: { job: jobs.kind() } });
    const id = await accept(runner, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    await cancelsElsewhere(story, jobs, other, id);
  },

  "J8: a cancel from another process reaches the operation also if its runner recorded something else just then":
    async (story) => {
      const jobs = new ManualJobs();
      const run = async (operation: Operation) => {
        await jobs.work(operation);
        await operation.step("one", () => 1);
        return jobs.work({ ...operation, input: `${String(operation.input)}, second half` } as Operation);
      };
      const kinds = { job: { run, mode: "shared" as const } };
      const runner = await story.engine({ kinds });
      const other = await story.process({ kinds });
      const [, b = ""] = await acceptAll(runner, "k", [job("a"), job("b")]);
      await story.until("both run", () => jobs.runs("a", "b"));
      const { signal } = jobs.job("b").operation;
      const looks = runner.store.hold(["claim"]);
      await other.journal.cancel("k", b, "not wanted", bob);
      jobs.job("a").finish();
      await story.until("a has recorded its step", () => jobs.running.includes("a, second half"));
      looks.letGo();
      await story.until("b is told", () => signal.aborted);
      assert.deepEqual(await story.ends(other, "k", b), cancelled);
    },

  "J8: an operation that another process accepted can be cancelled also before this one has heard of it": async (
    story,
  ) => {
    const jobs = new ManualJobs();
    const runner = await story.engine({ kinds: { job: jobs.kind() } });
    const other = await story.process({ kinds: { job: jobs.kind() } });
    await accept(runner, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    runner.store.hold(["claim"]);
    const b = await accept(other, "k", job("b"));
    assert.equal(await runner.journal.cancel("k", b, "not wanted", bob), true);
    assert.deepEqual((await other.journal.operation("k", b))?.outcome, cancelled);
  },

  "J8: a cancel that nobody was alive to hear ends the operation when someone is": async (story) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind() };
    const first = await story.engine({ kinds });
    const other = await story.process({ kinds });
    const id = await accept(first, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    await first.journal.kill();
    assert.equal(await other.journal.cancel("k", id, "not wanted", bob), true);
    await other.journal.start();
    await story.pass(leaseMs + 1_000);
    assert.deepEqual(await story.ends(other, "k", id), cancelled);
    assert.deepEqual(jobs.begun, ["a"]);
  },

  "J8: an operation beyond those in the record ends at once when it is cancelled, and the others keep their order":
    async (story) => {
      const order: string[] = [];
      const kinds = { job: { run: async ({ input }: Operation) => order.push(String(input)) } };
      const process = await story.process({ kinds });
      const names = numbered(100);
      const ids = await acceptAll(
        process,
        "k",
        names.map((name) => job(name)),
      );
      assert.equal((await process.journal.operation("k", ids[80] ?? ""))?.status, "open");
      assert.equal(await process.journal.cancel("k", ids[80] ?? "", "not wanted", bob), true);
      assert.deepEqual((await process.journal.operation("k", ids[80] ?? ""))?.outcome, cancelled);
      assert.deepEqual([(await read(process, "k")).open.length, (await read(process, "k")).queued], [4, 95]);
      await process.journal.start();
      await story.until("the others have ended", () => order.length === 99);
      assert.deepEqual(order, names.toSpliced(80, 1));
    },

  "J8: a function that does not listen is given up after its time, and what is behind it goes on": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind(), deaf: jobs.kind({ deaf: true }) } });
    const [a = ""] = await acceptAll(process, "k", [{ kind: "deaf", input: "a" }, job("b")]);
    await story.until("a runs", () => jobs.runs("a"));
    const givenUp = jobs.job("a");
    await process.journal.cancel("k", a, "not wanted", bob);
    await story.pass(graceMs - 100);
    assert.equal((await process.journal.operation("k", a))?.status, "open");
    await story.pass(100);
    assert.deepEqual(await story.ends(process, "k", a), cancelled);
    await story.until("b runs", () => jobs.running.includes("b"));
    assert.ok(
      process.events.some((event) => event.kind === "abandoned" && event.operation === a && event.why === "cancelled"),
    );
    const before = (await entriesOf(process, "k")).length;
    await assert.rejects(givenUp.operation.step("late", () => 1));
    givenUp.finish("late");
    await story.quiet();
    assert.equal((await entriesOf(process, "k")).length, before);
    jobs.job("b").finish();
  },

  "J8: what has ended cannot be cancelled, nor what never was": async (story) => {
    const process = await story.engine({ kinds: { job: { run: async () => 1 } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.ends(process, "k", id);
    const before = (await entriesOf(process, "k")).length;
    assert.equal(await process.journal.cancel("k", id, "late", bob), false);
    for (const odd of ["", "nonsense", "1-", "999-abc", `${id}x`, "0-a"]) {
      assert.equal(await process.journal.cancel("k", odd, "odd", bob), false, odd);
    }
    assert.equal(await process.journal.cancel("never there", "1-abc", "odd", bob), false);
    assert.equal((await entriesOf(process, "k")).length, before);
  },

  "J8: of two cancels the first one's reason counts": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind({ deaf: true }) } });
    const id = await accept(process, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    await process.journal.cancel("k", id, "not wanted", bob);
    await process.journal.cancel("k", id, "second thoughts", ann);
    jobs.job("a").finish();
    assert.deepEqual(await story.ends(process, "k", id), cancelled);
    assert.deepEqual(await storyOf(process, "k", id), ["accepted", "cancel requested", "settled"]);
  },

  "J8: one decision can cancel what runs and ask for what comes after it": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const [a = "", b = ""] = await acceptAll(process, "k", [job("a"), job("b")]);
    await story.until("a runs", () => jobs.runs("a"));
    const { accepted } = await process.journal.transact(
      "k",
      (resource) => ({
        result: null,
        change: {
          cancel: (resource?.open ?? []).map(({ id }) => ({ operation: id, reason: "not wanted" })),
          accept: [job("undo")],
        },
      }),
      { by: bob },
    );
    await story.until("undo runs", () => jobs.runs("undo"));
    assert.deepEqual(await story.ends(process, "k", a), cancelled);
    assert.deepEqual(await story.ends(process, "k", b), cancelled);
    jobs.job("undo").finish();
    assert.equal((await story.ends(process, "k", accepted[0]?.id ?? "")).kind, "succeeded");
    assert.deepEqual(jobs.begun, ["a", "undo"]);
  },

  "J8: a cancelled shared operation leaves those beside it alone": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind({ mode: "shared" }) } });
    const [a = "", b = ""] = await acceptAll(process, "k", [job("a"), job("b")]);
    await story.until("both run", () => jobs.runs("a", "b"));
    await process.journal.cancel("k", a, "not wanted", bob);
    assert.deepEqual(await story.ends(process, "k", a), cancelled);
    assert.equal(jobs.job("b").operation.signal.aborted, false);
    jobs.job("b").finish("fine");
    assert.deepEqual(await story.ends(process, "k", b), { kind: "succeeded", result: "fine" });
  },
};

async function cancelsElsewhere(story: Story, jobs: ManualJobs, other: Process, id: string): Promise<void> {
  const { signal } = jobs.job("a").operation;
  const askedAt = story.now;
  assert.equal(await other.journal.cancel("k", id, "not wanted", bob), true);
  await story.until("the runner has told it", () => signal.aborted);
  assert.ok(story.now - askedAt <= 5_000, `its signal was aborted only after ${story.now - askedAt} ms`);
  assert.deepEqual(await story.ends(other, "k", id), cancelled);
  assert.deepEqual(await storyOf(other, "k", id), ["accepted", "cancel requested", "settled"]);
}

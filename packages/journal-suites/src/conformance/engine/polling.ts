import assert from "node:assert/strict";
import { type Look, type Operation, Permanent, RetryLater } from "@osbert/journal";
import { job, ManualJobs } from "../manual-jobs.js";
import {
  accept,
  acceptAll,
  change,
  type EngineTests,
  entriesOf,
  type Process,
  read,
  type Story,
  storyOf,
} from "../story.js";

const pauseMs = 5_000;

/** J5 and J6: an operation that looks again and again, for as long as it takes. */
export const pollingTests: EngineTests = {
  "J5: a poll looks until there is something to see, and nothing tells of the looks that saw nothing": async (
    story,
  ) => {
    const looks: Omit<Look, "signal">[] = [];
    const run = async (operation: Operation) => {
      const asked = await operation.step("ask", () => "asked");
      const seen = await operation.poll(
        "answer",
        ({ looks: before, elapsedMs }) => {
          looks.push({ looks: before, elapsedMs });
          operation.describe("still waits");
          return before < 3 ? undefined : { after: before };
        },
        { everyMs: pauseMs },
      );
      await operation.step("use", () => seen.after);
      return [asked, seen];
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    for (let look = 1; look <= 3; look++) {
      await lookedTimes(story, process, id, look);
      const { lease, dueAt, seq } = await story.record(process, "k");
      assert.deepEqual([lease, dueAt, seq], [null, (await open(process, id)).readyAt, 3]);
      await story.pass(pauseMs);
    }
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: ["asked", { after: 3 }] });
    assert.deepEqual(await storyOf(process, "k", id), ["accepted", "step", "described", "step", "step", "settled"]);
    assert.deepEqual(
      looks.map((look) => look.looks),
      [0, 1, 2, 3],
    );
    assert.ok(looks.every(({ looks: before, elapsedMs }) => elapsedMs >= before * pauseMs));
  },

  "J6: a poll whose process is killed goes on at its time, and knows how often it has looked": async (story) => {
    const looks: [look: number, at: number][] = [];
    const run = (operation: Operation) =>
      operation.poll(
        "answer",
        ({ looks: before }) => {
          looks.push([before, story.now]);
          return before < 2 ? undefined : "seen";
        },
        { everyMs: (before) => before * 20_000 },
      );
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await lookedTimes(story, process, id, 1);
    const { readyAt } = await open(process, id);
    const next = await story.engine({ kinds: { job: { run } } });
    await process.journal.kill();
    await story.pass(18_000);
    assert.equal(looks.length, 1, "it looked before its time");
    await story.pass(2_000);
    await lookedTimes(story, next, id, 2);
    assert.ok((looks[1]?.[1] ?? 0) >= readyAt);
    await story.pass(40_000);
    assert.deepEqual(await story.ends(next, "k", id), { kind: "succeeded", result: "seen" });
    assert.deepEqual(
      looks.map(([look]) => look),
      [0, 1, 2],
    );
  },

  "J5: polls beside each other and beside what runs look at their own times, without an entry, and no lease is lost":
    async (story) => {
      const jobs = new ManualJobs();
      const looks = { slow: 0, fast: 0 };
      const run = (operation: Operation) => {
        const which = operation.input as "slow" | "fast";
        const everyMs = which === "slow" ? 3 * pauseMs : pauseMs;
        return operation.poll("answer", () => (++looks[which] > 3 ? "seen" : undefined), { everyMs });
      };
      const mode = "shared" as const;
      const process = await story.engine({ kinds: { job: jobs.kind({ mode }), poll: { run, mode } } });
      await acceptAll(process, "k", [job("long"), { kind: "poll", input: "slow" }, { kind: "poll", input: "fast" }]);
      await story.until("all are at it", () => jobs.runs("long") && looks.slow === 1 && looks.fast === 1);
      for (let passed = 0; passed < 3; passed++) await story.pass(pauseMs);
      await story.until("the fast one has seen it", () => looks.fast === 4);
      await story.until("so it ends", async () => (await read(process, "k")).open.length === 2);
      assert.equal(looks.slow, 2);
      assert.ok(jobs.runs("long"));
      assert.deepEqual(
        (await entriesOf(process, "k")).map(({ kind }) => kind),
        ["accepted", "accepted", "accepted", "step", "settled"],
      );
      assert.deepEqual(
        process.events.filter(({ kind }) => kind === "lease lost" || kind === "presence lost"),
        [],
      );
      jobs.job("long").finish();
      await story.until("the long one ends", async () => (await read(process, "k")).open.length === 1);
      for (let passed = 0; passed < 4; passed++) await story.pass(3 * pauseMs);
      await story.until("all have ended", async () => (await read(process, "k")).open.length === 0);
    },

  "J5: RetryLater says when a poll looks next, a failure is tried again as ever, and Permanent ends it": async (
    story,
  ) => {
    const answers = [
      new RetryLater("busy", { afterMs: 4 * pauseMs }),
      new Error("broken"),
      new Permanent("it will never be"),
    ];
    const run = (operation: Operation) =>
      operation.poll(
        "answer",
        () => {
          throw answers.shift() ?? new Error("nothing is left to answer");
        },
        { everyMs: pauseMs },
      );
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await lookedTimes(story, process, id, 1);
    const { readyAt, polls } = await open(process, id);
    assert.ok(readyAt - (polls?.[0]?.[3] ?? 0) >= 4 * pauseMs);
    await story.pass(4 * pauseMs);
    const outcome = await story.ends(process, "k", id);
    assert.ok(outcome.kind === "failed" && outcome.error.message === "it will never be", JSON.stringify(outcome));
    assert.deepEqual(await storyOf(process, "k", id), ["accepted", "retry", "settled"]);
  },

  "J5: a poll that is hurried looks now": async (story) => {
    let isThere = false;
    const run = (operation: Operation) =>
      operation.poll("answer", () => (isThere ? "seen" : undefined), { everyMs: 24 * 3_600_000 });
    const process = await story.engine({ kinds: { job: { run, deadlineMs: null } } });
    const id = await accept(process, "k", { kind: "job" });
    await lookedTimes(story, process, id, 1);
    isThere = true;
    await change(process, "k", { hurry: [id] });
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: "seen" });
  },
};

async function lookedTimes(story: Story, process: Process, id: string, looks: number): Promise<void> {
  await story.until(`it has looked ${looks} times`, async () => {
    const waiting = (await process.journal.operation("k", id))?.open;
    return waiting?.polls?.[0]?.[2] === looks && waiting.readyAt > story.now;
  });
  await story.quiet();
}

async function open({ journal }: Process, id: string) {
  const found = (await journal.operation("k", id))?.open;
  assert.ok(found != null, `${id} must be open`);
  return found;
}

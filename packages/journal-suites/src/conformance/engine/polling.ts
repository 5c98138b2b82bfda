import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { type Look, limits, type Operation, Permanent, RetryLater } from "@osbert/journal";
import { job, ManualJobs } from "../manual-jobs.js";
import {
  accept,
  acceptAll,
  change,
  type EngineTests,
  entriesOf,
  gate,
  type Process,
  read,
  type Story,
  storyOf,
} from "../story.js";

const pauseMs = 5_000;
const minuteMs = 60_000;

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

  "J6: what fails beside a poll or a sleep takes neither the times nor the count of looks from it": async (story) => {
    for (const fails of ["at once", "while the others wait"]) {
      const looks: Omit<Look, "signal">[] = [];
      let asked = 0;
      const ask = async () => {
        if (fails !== "at once") for (let turns = 0; turns < 5; turns++) await turn();
        if (++asked === 2) throw new RetryLater("busy", { afterMs: 50 });
        if (asked < 4) throw new Error("down");
        return asked;
      };
      const run = (operation: Operation) =>
        Promise.all([
          operation.poll(
            "answer",
            ({ looks: before, elapsedMs }) => {
              looks.push({ looks: before, elapsedMs });
              return before === 0 ? undefined : "seen";
            },
            { everyMs: minuteMs },
          ),
          operation.sleep("rest", minuteMs),
          operation.step("ask", ask),
        ]);
      const backoff = { firstMs: 50, factor: 1, longestMs: 50 };
      const process = await story.engine({ kinds: { job: { run, backoff } } });
      const from = story.now;
      const id = await accept(process, fails, { kind: "job" });
      await story.until("what failed is done", async () => (await open(process, id, fails)).steps.length === 1);
      await story.until("it waits", async () => (await open(process, id, fails)).readyAt > story.now);
      assert.deepEqual([looks.length, asked], [1, 4], fails);
      const { polls, waits } = await open(process, id, fails);
      for (const until of [polls?.[0]?.[1] ?? 0, waits[0]?.[1] ?? 0]) {
        assert.ok(until >= from + minuteMs && until < from + minuteMs + pauseMs, `${fails}: ${until - from} ms`);
      }
      await story.pass(minuteMs);
      const outcome = await story.ends(process, fails, id);
      assert.deepEqual(outcome, { kind: "succeeded", result: ["seen", null, 4] }, fails);
      assert.equal(looks[1]?.looks, 1);
      assert.ok((looks[1]?.elapsedMs ?? 0) >= minuteMs, `${fails}: ${looks[1]?.elapsedMs} ms`);
      await process.journal.stop();
    }
  },

  "J6: a poll knows since when it has looked, also if its first look failed": async (story) => {
    const elapsed: number[] = [];
    const run = (operation: Operation) =>
      operation.poll(
        "answer",
        ({ elapsedMs }) => {
          elapsed.push(elapsedMs);
          if (elapsed.length === 1) throw new Error("down");
          return "seen";
        },
        { everyMs: pauseMs },
      );
    const backoff = { firstMs: pauseMs, factor: 1, longestMs: pauseMs };
    const process = await story.engine({ kinds: { job: { run, backoff } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.rests(process, "k", id);
    await story.pass(pauseMs);
    await story.ends(process, "k", id);
    assert.ok((elapsed[1] ?? 0) >= pauseMs / 2, `${elapsed[1]} ms`);
  },

  "J5: a poll that fails, which the function catches, does not keep what comes after it from waiting": async (
    story,
  ) => {
    const ways = {
      caught: async (operation: Operation, poll: Promise<string>) => {
        await poll.catch(rethrowUnlessDown);
        await operation.sleep("rest", minuteMs);
      },
      "beside another": async (operation: Operation, poll: Promise<string>) => {
        const other = operation.poll("other", ({ looks }) => (looks === 0 ? undefined : "seen"), { everyMs: minuteMs });
        await Promise.allSettled([poll]);
        await other;
      },
    };
    for (const [key, goOn] of Object.entries(ways)) {
      const elapsed: number[] = [];
      const look = ({ elapsedMs }: Look): string => {
        elapsed.push(elapsedMs);
        throw new Error("down");
      };
      const run = (operation: Operation) => goOn(operation, operation.poll("health", look, { everyMs: pauseMs }));
      const process = await story.engine({ kinds: { job: { run } } });
      const id = await accept(process, key, { kind: "job" });
      await story.rests(process, key, id);
      assert.equal(elapsed.length, 1, `${key}: it looks once before the wait`);
      await story.pass(minuteMs);
      assert.equal((await story.ends(process, key, id)).kind, "succeeded");
      assert.equal(elapsed.length, 2, `${key}: and once after it`);
      assert.ok((elapsed[1] ?? 0) >= minuteMs / 2, `${key}: since when it looks is lost: ${elapsed[1]} ms`);
      await process.journal.stop();
    }
  },

  "J5: polls side by side look at their own times, and what each has seen is recorded": async (story) => {
    const seen = gate<string>();
    const looks = { quick: 0, slow: 0 };
    const quick = () => (++looks.quick < 3 ? undefined : "quick");
    // It is still looking when the other has seen that there is nothing.
    const slow = () => (++looks.slow < 2 ? undefined : seen.passed);
    const run = (operation: Operation) =>
      Promise.all([
        operation.poll("quick", quick, { everyMs: pauseMs }),
        operation.poll("slow", slow, { everyMs: 1.5 * pauseMs }),
      ]);
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    const counted = (quickly: number, slowly: number) =>
      story.until(`${quickly} and ${slowly} looks`, () => looks.quick === quickly && looks.slow === slowly);
    await counted(1, 1);
    await story.rests(process, "k", id);
    await story.pass(pauseMs);
    await counted(2, 1);
    await story.rests(process, "k", id);
    await story.pass(pauseMs / 2);
    await counted(2, 2);
    seen.open("slow");
    await story.rests(process, "k", id);
    await story.pass(pauseMs);
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: ["quick", "slow"] });
    assert.deepEqual(looks, { quick: 3, slow: 2 });
    assert.deepEqual(await storyOf(process, "k", id), ["accepted", "step", "step", "settled"]);
  },

  "J4: a step beside a poll is recorded, though the poll waits, and its failure is heard of": async (story) => {
    const done = gate<string>();
    let looks = 0;
    let begun = 0;
    const failures = [new Error("broken")];
    const work = async () => {
      begun++;
      const failure = failures.shift();
      const result = await done.passed;
      if (failure !== undefined) throw failure;
      return result;
    };
    const run = (operation: Operation) =>
      Promise.all([
        operation.poll("answer", () => (++looks < 4 ? undefined : "seen"), { everyMs: pauseMs }),
        operation.step("work", work),
      ]);
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.until("it has looked and is at it", () => looks === 1 && begun === 1);
    await story.pass(2 * pauseMs);
    assert.deepEqual([looks, begun], [1, 1]);
    done.open("done");
    for (let passed = 0; passed < 5; passed++) await story.pass(pauseMs);
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: ["seen", "done"] });
    assert.equal(begun, 2);
    assert.deepEqual(await storyOf(process, "k", id), ["accepted", "retry", "step", "step", "settled"]);
  },

  "J5: a poll beside a wait looks at its own times, and the wait is told once": async (story) => {
    let looks = 0;
    const run = (operation: Operation) =>
      Promise.all([
        operation.sleep("rest", 4 * pauseMs),
        operation.poll("answer", () => (++looks < 3 ? undefined : "seen"), { everyMs: pauseMs }),
      ]);
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    for (let look = 1; look <= 3; look++) {
      await story.until(`${look} looks`, () => looks === look);
      await story.rests(process, "k", id);
      await story.pass(pauseMs);
    }
    await story.pass(pauseMs);
    assert.equal((await story.ends(process, "k", id)).kind, "succeeded");
    assert.equal(looks, 3);
    assert.deepEqual(await storyOf(process, "k", id), ["accepted", "waiting", "step", "settled"]);
  },

  "J5: a poll without a pause, and RetryLater without one, leave the store a little peace": async (story) => {
    let looks = 0;
    let tries = 0;
    const poll = (operation: Operation) =>
      operation.poll("answer", () => (++looks < 4 ? undefined : "seen"), { everyMs: 0 });
    const later = async () => {
      if (++tries < 4) throw new RetryLater("not yet", { afterMs: 0 });
      return "done";
    };
    const process = await story.engine({ kinds: { poll: { run: poll }, later: { run: later } } });
    const began = story.now;
    const ids = [await accept(process, "k", { kind: "poll" }), await accept(process, "l", { kind: "later" })] as const;
    assert.deepEqual(await story.ends(process, "k", ids[0]), { kind: "succeeded", result: "seen" });
    assert.deepEqual(await story.ends(process, "l", ids[1]), { kind: "succeeded", result: "done" });
    assert.ok(story.now - began >= 3 * limits.shortestPauseMs, "it went on without a pause");
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

  "hurry: a poll that is looking at that moment looks once more, at once": async (story) => {
    const doors = [gate(), gate(), gate()];
    let looks = 0;
    const look = async () => {
      await doors[looks++]?.passed;
      return looks < 3 ? undefined : "seen";
    };
    const run = (operation: Operation) => operation.poll("answer", look, { everyMs: 3_600_000 });
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.until("it looks", () => looks === 1);
    await change(process, "k", { hurry: [id] });
    await change(process, "k", { hurry: [id] });
    doors[0]?.open();
    await story.until("it looks again", () => looks === 2);
    doors[1]?.open();
    await story.until("it sleeps", async () => (await open(process, id)).readyAt > story.now);
    assert.equal(looks, 2, "once");
    await change(process, "k", { hurry: [id] });
    doors[2]?.open();
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: "seen" });
    assert.deepEqual(await storyOf(process, "k", id), ["accepted", "hurried", "hurried", "step", "settled"]);
  },
};

/** What ends the attempt passes. */
function rethrowUnlessDown(error: unknown): void {
  if (!(error instanceof Error && error.message === "down")) throw error;
}

async function lookedTimes(story: Story, process: Process, id: string, looks: number): Promise<void> {
  await story.until(`it has looked ${looks} times`, async () => {
    const waiting = (await process.journal.operation("k", id))?.open;
    return waiting?.polls?.[0]?.[2] === looks && waiting.readyAt > story.now;
  });
  await story.quiet();
}

async function open({ journal }: Process, id: string, key = "k") {
  const found = (await journal.operation(key, id))?.open;
  assert.ok(found != null, `${id} must be open`);
  return found;
}

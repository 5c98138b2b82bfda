import assert from "node:assert/strict";
import type { Entry, Operation, Outcome } from "@osbert/journal";
import { Interrupted, Permanent, RetryLater } from "@osbert/journal";
import { nextDelayMs } from "@osbert/journal/testing";
import { job, ManualJobs } from "../manual-jobs.js";
import { accept, acceptAll, ann, type EngineTests, entriesOf, graceMs, numbered, read, storyOf } from "../story.js";

interface Retry {
  readonly attempt: number;
  readonly error: string;
  readonly until: number;
}

/** What becomes of an operation that fails: the class of the error decides. */
export const failuresTests: EngineTests = {
  "failure: anything thrown is tried again, later and later, with jitter": async (story) => {
    const chances = [0, 0.25, 0.5, 0.75, 1];
    let chance = 0;
    const random = () => chances[chance++ % chances.length] ?? 0;
    const backoff = { firstMs: 1_000, factor: 3, longestMs: 20_000 };
    const run = async ({ attempt }: Operation) => {
      if (attempt <= 5) throw new Error(`attempt ${attempt}`);
      return attempt;
    };
    const process = await story.engine({ kinds: { job: { run, backoff } }, random });
    const id = await accept(process, "k", { kind: "job" });
    for (let attempt = 1; attempt <= 5; attempt++) {
      await story.until(
        `attempt ${attempt} was made`,
        async () => (await read(process, "k")).open[0]?.attempts === attempt,
      );
      const entry = (await entriesOf(process, "k")).at(-1);
      const { until, error } = retryOf(entry);
      const expected = nextDelayMs(attempt, () => chances[attempt - 1] ?? 0, backoff);
      assert.deepEqual([entry?.kind, error, until - (entry?.at ?? 0)], ["retry", `attempt ${attempt}`, expected]);
      assert.equal((await read(process, "k")).open[0]?.readyAt, until);
      await story.pass(until - story.now - 1);
      assert.equal((await read(process, "k")).open[0]?.attempts, attempt, "not before its time");
      await story.pass(1);
    }
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: 6 });
  },

  "failure: a recorded step sets the back-off back": async (story) => {
    const run = async (operation: Operation) => {
      if (operation.attempt <= 3) throw new Error("before the step");
      await operation.step("progress", () => 1);
      throw new Error("after the step");
    };
    const process = await story.engine({ kinds: { job: { run } } });
    await accept(process, "k", { kind: "job" });
    await story.pass(500 + 1_000 + 2_000 + 500 + 100);
    await story.until("it failed five times", async () => ((await read(process, "k")).open[0]?.attempts ?? 0) >= 5);
    const retries = (await entriesOf(process, "k")).filter(({ kind }) => kind === "retry");
    const delays = retries.map((entry) => retryOf(entry).until - entry.at);
    assert.deepEqual(delays.slice(0, 5), [500, 1_000, 2_000, 500, 1_000]);
  },

  "failure: an operation is given up after as many attempts as it may have": async (story) => {
    let runs = 0;
    const run = async () => {
      runs++;
      throw new Error("always");
    };
    const process = await story.engine({ kinds: { job: { run, maxAttempts: 3 } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.pass(60_000);
    const outcome = await story.ends(process, "k", id);
    assert.equal(runs, 3);
    assert.ok(outcome.kind === "failed" && outcome.error.class === "exhausted", JSON.stringify(outcome));
    assert.match(outcome.error.message, /3 .*attempts.*always/);
    assert.deepEqual(await storyOf(process, "k", id), ["accepted", "retry", "retry", "settled"]);
  },

  "failure: an operation that gets on is not given up: only failures in a row count": async (story) => {
    const run = async (operation: Operation) => {
      const done = ["one", "two", "three", "four"].filter((step) => operation.recorded(step) !== undefined).length;
      const next = ["one", "two", "three", "four"][done];
      if (next === undefined) return "done";
      for (const step of ["one", "two", "three", "four"].slice(0, done + 1)) await operation.step(step, () => step);
      throw new Error(`failed behind step ${next}`);
    };
    const process = await story.engine({ kinds: { job: { run, maxAttempts: 2 } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.pass(10_000);
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: "done" });
  },

  "failure: waiting does not count among the attempts that an operation may have": async (story) => {
    const run = async (operation: Operation) => {
      for (const name of ["one", "two", "three", "four"]) await operation.sleep(name, 1_000);
      return operation.step("flaky", ({ attempt }) => {
        if (attempt === 5) throw new Error("the first failure");
        return "fine";
      });
    };
    const process = await story.engine({ kinds: { job: { run, maxAttempts: 3 } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.pass(60_000);
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: "fine" });
  },

  "failure: Permanent ends the operation at once, and its details are kept": async (story) => {
    const details = { quota: 5, used: [1, 2] };
    const run = async (operation: Operation) => {
      await operation.step("one", () => {
        throw new Permanent("quota exceeded", { details, cause: new Error("inner") });
      });
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    assert.deepEqual(await story.ends(process, "k", id), {
      kind: "failed",
      error: { message: "quota exceeded", class: "permanent", details },
    });
    assert.deepEqual(await storyOf(process, "k", id), ["accepted", "settled"]);
    const { last } = await read(process, "k");
    assert.deepEqual([last?.outcome, last?.message], ["failed", "quota exceeded"]);
  },

  "failure: details that cannot be kept are left out, the failure stays": async (story) => {
    const run = async () => {
      throw new Permanent("no", { details: 1n });
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const outcome = await story.ends(process, "k", await accept(process, "k", { kind: "job" }));
    assert.deepEqual(outcome, { kind: "failed", error: { message: "no", class: "permanent" } });
  },

  "failure: RetryLater waits for as long as it says and is no failure": async (story) => {
    const run = async ({ attempt }: Operation) => {
      if (attempt <= 3) throw new RetryLater("still booting", { afterMs: 7_000 });
      throw new Error("now it failed");
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.until("it failed", async () => {
      await story.pass(1_000);
      return (await read(process, "k")).open[0]?.attempts === 4;
    });
    const entries = (await entriesOf(process, "k")).filter(({ operation }) => operation === id).slice(1);
    assert.deepEqual(
      entries.map(({ kind }) => kind),
      ["waiting", "waiting", "waiting", "retry"],
    );
    const delays = entries.map((entry) => retryOf(entry).until - entry.at);
    assert.deepEqual(delays, [7_000, 7_000, 7_000, 500]);
    assert.match(JSON.stringify(entries[0]?.payload), /still booting/);
  },

  "failure: a RetryLater of no sensible length is tried again all the same": async (story) => {
    const lengths = [Number.NaN, -5, 0.4, Number.NEGATIVE_INFINITY];
    const run = async ({ attempt }: Operation) => {
      const afterMs = lengths[attempt - 1];
      if (afterMs !== undefined) throw new RetryLater("odd", { afterMs });
      return "fine";
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.pass(1_000);
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: "fine" });
  },

  "failure: what is thrown need not be an Error": async (story) => {
    const nameless = Object.assign(new Error(""), { name: "" });
    const odd: readonly unknown[] = ["a text", 42, null, undefined, { code: 7 }, Symbol("s"), 10n, () => 1, nameless];
    const run = async ({ attempt }: Operation) => {
      if (attempt <= odd.length) throw odd[attempt - 1];
      return "fine";
    };
    const process = await story.engine({ kinds: { job: { run, backoff: { firstMs: 1, factor: 1, longestMs: 1 } } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.pass(1_000);
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: "fine" });
    const retries = (await entriesOf(process, "k")).filter(({ kind }) => kind === "retry");
    assert.equal(retries.length, odd.length);
    for (const retry of retries) assert.equal(typeof retryOf(retry).error, "string");
    assert.match(retryOf(retries[0]).error, /a text/);
  },

  "failure: a function that throws before it is asynchronous is tried again like any other": async (story) => {
    let runs = 0;
    const run = (): Promise<unknown> => {
      if (++runs === 1) throw new Error("at once");
      return Promise.resolve("fine");
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.pass(1_000);
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: "fine" });
  },

  "deadline: a running operation is told, and has failed": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind({ deadlineMs: 60_000 }) } });
    const id = await accept(process, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    const { signal, deadlineAt } = jobs.job("a").operation;
    await story.pass((deadlineAt ?? 0) - story.now - 1);
    assert.equal(signal.aborted, false);
    await story.pass(1);
    const reason: unknown = signal.reason;
    assert.ok(reason instanceof Interrupted && reason.why === "deadline");
    assertDeadline(await story.ends(process, "k", id));
  },

  "deadline: a step that never returns is given up, and what is behind it goes on": async (story) => {
    const jobs = new ManualJobs();
    const run = async (operation: Operation) => operation.step("hangs", () => new Promise<never>(() => undefined));
    const process = await story.engine({ kinds: { hangs: { run, deadlineMs: 60_000 }, job: jobs.kind() } });
    const [a = ""] = await acceptAll(process, "k", [{ kind: "hangs" }, job("b")]);
    await story.until("it runs", () => process.journal.running === 1);
    await story.pass(60_000 + graceMs);
    assertDeadline(await story.ends(process, "k", a));
    await story.until("b runs", () => jobs.runs("b"));
    jobs.job("b").finish();
  },

  "deadline: an operation that waits for its next attempt has failed, with its last error": async (story) => {
    const run = async () => {
      throw new Error("the host is down");
    };
    const process = await story.engine({ kinds: { job: { run, deadlineMs: 10_000 } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.pass(11_000);
    const outcome = await story.ends(process, "k", id);
    assertDeadline(outcome);
    assert.match(JSON.stringify(outcome), /the host is down/);
    const { endedAt = 0, acceptedAt = 0 } = (await read(process, "k")).last ?? {};
    assert.ok(
      endedAt - acceptedAt >= 10_000 && endedAt - acceptedAt <= 11_000,
      `ended after ${endedAt - acceptedAt} ms`,
    );
  },

  "deadline: an operation that sleeps longer than it may has failed at its deadline": async (story) => {
    const run = async (operation: Operation) => operation.sleep("long", 600_000);
    const process = await story.engine({ kinds: { job: { run, deadlineMs: 60_000 } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.pass(61_000);
    assertDeadline(await story.ends(process, "k", id));
  },

  "deadline: an operation that waits its turn has failed without having run": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const [, b = "", c = ""] = await acceptAll(process, "k", [job("a"), job("b", { deadlineMs: 60_000 }), job("c")]);
    await story.until("a runs", () => jobs.runs("a"));
    await story.pass(61_000);
    assertDeadline(await story.ends(process, "k", b));
    jobs.job("a").finish();
    await story.until("c runs", () => jobs.runs("c"));
    jobs.job("c").finish();
    await story.ends(process, "k", c);
    assert.deepEqual(jobs.begun, ["a", "c"]);
  },

  "deadline: an operation beyond those in the record has failed at its deadline": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const ids = await acceptAll(process, "k", [
      ...numbered(80).map((name) => job(name)),
      job("short of time", { deadlineMs: 60_000 }),
    ]);
    await story.until("the first one runs", () => jobs.runs("0000"));
    await story.pass(61_000);
    assertDeadline(await story.ends(process, "k", ids[80] ?? ""));
  },

  "deadline: many that pass together all end, also with little room": async (story) => {
    const run = async (operation: Operation) => operation.sleep("long", 600_000);
    const process = await story.engine({
      kinds: { job: { run, deadlineMs: 60_000 } },
      concurrency: 8,
      laneConcurrency: 2,
    });
    const keys = numbered(12, "k");
    const ids = await Promise.all(keys.map((key) => accept(process, key, { kind: "job" })));
    for (const [index, key] of keys.entries()) await story.rests(process, key, ids[index] ?? "");
    await story.pass(65_000);
    for (const [index, key] of keys.entries()) assertDeadline(await story.ends(process, key, ids[index] ?? ""));
  },

  "deadline: an operation may have none, and one of its own": async (story) => {
    const process = await story.process({ kinds: { job: { run: async () => 1, deadlineMs: 5_000 } } });
    const { accepted } = await process.journal.transact(
      "k",
      () => ({
        result: 0,
        change: { accept: [{ kind: "job" }, { kind: "job", deadlineMs: null }, { kind: "job", deadlineMs: 9_000 }] },
      }),
      { by: ann },
    );
    assert.deepEqual(
      accepted.map(({ deadlineAt, acceptedAt }) => deadlineAt && deadlineAt - acceptedAt),
      [5_000, null, 9_000],
    );
  },
};

function retryOf(entry: Entry | undefined): Retry {
  assert.ok(entry !== undefined);
  return entry.payload as unknown as Retry;
}

function assertDeadline(outcome: Outcome): void {
  assert.ok(outcome.kind === "failed" && outcome.error.class === "deadline", JSON.stringify(outcome));
}

import assert from "node:assert/strict";
import type { Operation } from "@osbert/journal";
import { RetryLater } from "@osbert/journal";
import {
  accept,
  type EngineTests,
  entriesOf,
  leaseMs,
  numbered,
  type Process,
  read,
  type Story,
  storyOf,
} from "../story.js";

const hourMs = 3_600_000;
const minuteMs = 60_000;

/** J5 and J6: waiting is a due time in the store. */
export const waitingTests: EngineTests = {
  "J5: an operation that sleeps is not run meanwhile, and its resource has no runner": async (story) => {
    const steps: string[] = [];
    const run = async (operation: Operation) => {
      await operation.step("before", () => steps.push("before"));
      await operation.sleep("an hour", hourMs);
      await operation.step("after", () => steps.push("after"));
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    const until = await restsUntil(story, process, "k", id);
    const waiting = (await entriesOf(process, "k")).find(({ kind }) => kind === "waiting");
    assert.equal(until, (waiting?.at ?? 0) + hourMs);
    await story.pass(hourMs - 2 * minuteMs);
    assert.deepEqual(steps, ["before"]);
    await story.pass(2 * minuteMs);
    assert.equal((await story.ends(process, "k", id)).kind, "succeeded");
    assert.deepEqual(steps, ["before", "after"]);
    assert.deepEqual(await storyOf(process, "k", id), ["accepted", "step", "waiting", "step", "settled"]);
  },

  "J5: an operation that is to be tried later is not run meanwhile, and its resource has no runner": async (story) => {
    const run = async ({ attempt }: Operation) => {
      if (attempt === 1) throw new RetryLater("the host is still booting", { afterMs: hourMs });
      return attempt;
    };
    const process = await story.engine({ kinds: { job: { run, maxAttempts: 2 } } });
    const id = await accept(process, "k", { kind: "job" });
    await restsUntil(story, process, "k", id);
    await story.pass(hourMs - 2 * minuteMs);
    assert.equal((await read(process, "k")).open.length, 1);
    await story.pass(2 * minuteMs);
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: 2 });
  },

  "J5: a function that catches what puts it to sleep sleeps all the same": async (story) => {
    const effects: string[] = [];
    const run = async (operation: Operation) => {
      await operation.sleep("a while", hourMs).catch(() => undefined);
      await operation.step("effect", () => effects.push("done")).catch(() => undefined);
      return "woke";
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await restsUntil(story, process, "k", id);
    assert.deepEqual(effects, []);
    await story.pass(hourMs);
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: "woke" });
    assert.deepEqual(effects, ["done"]);
  },

  "J5: an engine with nothing due rests, however many operations wait": async (story) => {
    const run = async (operation: Operation) => operation.sleep("long", 20 * hourMs);
    const process = await story.engine({ kinds: { job: { run } } });
    const keys = numbered(50, "k");
    const ids = await Promise.all(keys.map((key) => accept(process, key, { kind: "job" })));
    for (const [index, key] of keys.entries()) await story.rests(process, key, ids[index] ?? "");
    assert.equal(process.journal.running, 0);
    const before = process.store.calls.length;
    await story.pass(10 * minuteMs);
    const { pollMs, reapMs } = process.store.store.pace;
    const looks = [pollMs, reapMs].map((ms) => (ms === null ? 0 : (10 * minuteMs) / ms + 1));
    const calls = process.store.calls.slice(before);
    assert.ok(
      calls.length <= (looks[0] ?? 0) + (looks[1] ?? 0),
      `${calls.length} calls in ten minutes in which nothing was due: ${[...new Set(calls.map(({ method }) => method))].join(", ")}`,
    );
  },

  "J5: an operation accepted for later is not begun before": async (story) => {
    const process = await story.engine({ kinds: { job: { run: async () => story.now } } });
    const id = await accept(process, "k", { kind: "job", delayMs: hourMs });
    const { acceptedAt, readyAt } = (await read(process, "k")).open[0] ?? { acceptedAt: 0, readyAt: 0 };
    assert.equal(readyAt - acceptedAt, hourMs);
    await story.pass(hourMs - minuteMs);
    assert.equal((await read(process, "k")).open.length, 1);
    await story.pass(minuteMs);
    const outcome = await story.ends(process, "k", id);
    assert.ok(outcome.kind === "succeeded" && Number(outcome.result) >= readyAt);
  },

  "J5: a sleep of no time ends": async (story) => {
    const run = async (operation: Operation) => {
      await operation.sleep("none", 0);
      await operation.sleep("a fraction", 0.5);
      return "over";
    };
    const process = await story.engine({ kinds: { job: { run } } });
    assert.deepEqual(await story.ends(process, "k", await accept(process, "k", { kind: "job" })), {
      kind: "succeeded",
      result: "over",
    });
  },

  "J5: a sleep for no number of milliseconds is a clear failure": async (story) => {
    const run = async (operation: Operation) => operation.sleep("odd", operation.input === "NaN" ? Number.NaN : -1);
    const process = await story.engine({ kinds: { job: { run } } });
    for (const input of ["NaN", "-1"]) {
      const outcome = await story.ends(process, "k", await accept(process, "k", { kind: "job", input }));
      assert.ok(outcome.kind === "failed" && outcome.error.class === "permanent", JSON.stringify(outcome));
    }
  },

  "J5: a sleep longer than any store can count does not end early": async (story) => {
    const run = async (operation: Operation) => {
      await operation.sleep("for ever", Number(operation.input));
      return "woke";
    };
    const kinds = { job: { run, deadlineMs: null } };
    for (const input of ["Infinity", "1e300"]) {
      const first = await story.engine({ kinds });
      const id = await accept(first, input, { kind: "job", input });
      await story.until("it waits or was refused", async () => {
        const status = await first.journal.operation(input, id);
        return status?.outcome?.kind === "failed" || (status?.open?.attempts ?? 0) > 0;
      });
      await first.journal.kill();
      const second = await story.engine({ kinds });
      await story.pass(minuteMs);
      const status = await second.journal.operation(input, id);
      assert.notEqual(status?.status, "succeeded", "nobody sleeps for ever and is done a minute later");
      await story.ends(second, "fine", await accept(second, "fine", { kind: "job", input: "0" }));
      await second.journal.kill();
    }
  },

  "J6: a sleep survives a restart: it ends when it would have": async (story) => {
    const run = async (operation: Operation) => {
      await operation.sleep("an hour", hourMs);
      return "woke";
    };
    await survives(story, run, async (process, id, until) => {
      await story.pass(until - story.now - minuteMs);
      assert.equal((await process.journal.operation("k", id))?.status, "open");
      await story.pass(minuteMs);
      assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: "woke" });
    });
  },

  "J6: a back-off survives a restart: the next attempt is when it would have been": async (story) => {
    const run = async ({ attempt }: Operation) => {
      if (attempt < 8) throw new Error("not yet");
      return attempt;
    };
    const first = await story.engine({ kinds: { job: { run } } });
    const id = await accept(first, "k", { kind: "job" });
    await story.pass(500 + 1_000 + 2_000 + 4_000 + 8_000 + 100);
    await story.until("it waits for its seventh attempt", async () => (await read(first, "k")).open[0]?.attempts === 6);
    const before = (await read(first, "k")).open[0];
    const { dueAt } = await story.record(first, "k");
    await first.journal.kill();
    const second = await story.engine({ kinds: { job: { run } } });
    assert.deepEqual((await read(second, "k")).open[0], before);
    assert.equal((await story.record(second, "k")).dueAt, dueAt);
    assert.equal(dueAt, before?.readyAt);
    await story.pass((dueAt ?? 0) - story.now - 1_000);
    assert.equal((await read(second, "k")).open[0]?.attempts, 6);
    await story.pass(1_000);
    await story.until("the seventh attempt was made", async () => (await read(second, "k")).open[0]?.attempts === 7);
    await story.pass(minuteMs);
    assert.deepEqual(await story.ends(second, "k", id), { kind: "succeeded", result: 8 });
  },

  "J6: a deadline survives a restart, and passes while no process lives": async (story) => {
    const run = async (operation: Operation) => operation.sleep("long", 10 * hourMs);
    const first = await story.engine({ kinds: { job: { run, deadlineMs: hourMs } } });
    const id = await accept(first, "k", { kind: "job" });
    await story.rests(first, "k", id);
    const { acceptedAt = 0, deadlineAt } = (await read(first, "k")).open[0] ?? {};
    assert.equal(deadlineAt, acceptedAt + hourMs);
    assert.equal((await story.record(first, "k")).dueAt, deadlineAt);
    await first.journal.kill();
    await story.pass(2 * hourMs);
    const second = await story.engine({ kinds: { job: { run, deadlineMs: 50 * hourMs } } });
    const outcome = await story.ends(second, "k", id);
    assert.ok(outcome.kind === "failed" && outcome.error.class === "deadline");
  },
};

/** Sleeps, is killed, is started again: with the same due time. */
async function survives(
  story: Story,
  run: (operation: Operation) => Promise<unknown>,
  then: (process: Process, id: string, until: number) => Promise<void>,
): Promise<void> {
  const first = await story.engine({ kinds: { job: { run } } });
  const id = await accept(first, "k", { kind: "job" });
  const until = await restsUntil(story, first, "k", id);
  await story.pass(leaseMs);
  const { dueAt } = await story.record(first, "k");
  await first.journal.kill();
  const second = await story.engine({ kinds: { job: { run } } });
  await story.quiet();
  assert.equal((await story.record(second, "k")).dueAt, dueAt);
  assert.equal((await read(second, "k")).open[0]?.readyAt, until);
  await then(second, id, until);
}

/** Nobody holds it, nothing runs, and the store knows when it goes on. */
async function restsUntil(story: Story, process: Process, key: string, id: string): Promise<number> {
  await story.rests(process, key, id);
  const { open, running } = await read(process, key);
  const record = await story.record(process, key);
  assert.deepEqual([process.journal.running, running, record.lease], [0, false, null]);
  const readyAt = open[0]?.readyAt ?? 0;
  assert.equal(record.dueAt, readyAt);
  return readyAt;
}

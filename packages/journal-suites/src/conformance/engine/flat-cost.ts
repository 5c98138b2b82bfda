import assert from "node:assert/strict";
import type { NewOperation, Operation, OperationStatus } from "@osbert/journal";
import type { ClaimAnswer } from "@osbert/journal/store";
import { job, ManualJobs } from "../manual-jobs.js";
import {
  accept,
  acceptAll,
  ann,
  change,
  type EngineTests,
  numbered,
  type Process,
  read,
  type Story,
} from "../story.js";
import type { Traffic } from "../watched-store.js";

const noted = (count: number) => numbered(count).map((payload) => ({ kind: "noted", payload }));
const later: Partial<NewOperation> = { delayMs: 3_600_000 };

/** J10: costs do not grow. Counted in calls of the store and in what they carry, not in time. */
export const flatCostTests: EngineTests = {
  "J10: reading and accepting cost the same with 500 parts as with none": async (story) => {
    await costsTheSame(story, async (process, key) => {
      if (key === "small") return change(process, key, { data: 1 });
      await change(process, key, {
        data: 1,
        parts: Object.fromEntries(numbered(500).map((id) => [id, { body: "x".repeat(100) }])),
      });
    });
  },

  "J10: reading and accepting cost the same with 3,000 entries as with 3": async (story) => {
    await costsTheSame(story, async (process, key) => {
      await change(process, key, { data: 1, entries: noted(key === "small" ? 3 : 3_000) });
    });
  },

  "J10: reading and accepting cost the same with 2,000 queued operations as with 100": async (story) => {
    await costsTheSame(story, async (process, key) => {
      const count = key === "small" ? 100 : 2_000;
      await acceptAll(
        process,
        key,
        numbered(count).map((name) => job(name, later)),
      );
    });
  },

  "J10: running an operation costs the same with 500 parts, 3,000 entries and 2,000 operations behind it": async (
    story,
  ) => {
    const jobs = new ManualJobs();
    const run = async (operation: Operation) => {
      await operation.step("one", () => 1);
      return jobs.work(operation);
    };
    const process = await story.process({ kinds: { job: { run } } });
    const costs: Traffic[] = [];
    for (const [key, behind] of [
      ["small", 100],
      ["large", 2_000],
    ] as const) {
      if (key === "large") {
        const parts = Object.fromEntries(numbered(500).map((id) => [id, { body: "x".repeat(100) }]));
        await change(process, key, { parts, entries: noted(3_000) });
      }
      await acceptAll(process, key, [
        job(`first of ${key}`, { delayMs: 60_000 }),
        ...numbered(behind).map((name) => job(name, later)),
      ]);
    }
    await process.journal.start();
    await story.pass(60_000);
    await story.until("both run", () => jobs.running.length === 2);
    for (const key of ["small", "large"]) {
      costs.push(
        await process.store.traffic(async () => {
          jobs.job(`first of ${key}`).finish();
          await story.until("it has ended", () =>
            process.events.some((event) => event.kind === "settled" && event.key === key),
          );
          await story.quiet();
        }, ["claim", "renew", "reap"]),
      );
    }
    assertSame(costs[0], costs[1]);
  },

  "J10: taking a resource up costs the same with 500 parts, 3,000 entries and 2,000 operations behind it": async (
    story,
  ) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind() };
    const process = await story.process({ kinds });
    const [costs, claims]: [Traffic[], number[]] = [[], []];
    for (const [key, behind] of [
      ["small", 100],
      ["large", 2_000],
    ] as const) {
      if (key === "large") {
        const parts = Object.fromEntries(numbered(500).map((id) => [id, { body: "x".repeat(100) }]));
        await change(process, key, { parts, entries: noted(3_000) });
      }
      await acceptAll(process, key, [job(key), ...numbered(behind).map((name) => job(name, later))]);
      const engine = await story.process({ kinds });
      costs.push(
        await engine.store.traffic(async () => {
          await engine.journal.start();
          await story.until("its first operation runs", () => jobs.runs(key));
        }, ["now", "reap", "renew", "attend", "claim"]),
      );
      const claimed = engine.store.calls.find(({ method, answer }) => method === "claim" && isClaimed(answer));
      assert.ok(claimed !== undefined);
      claims.push(JSON.stringify(claimed.answer).length);
      jobs.job(key).finish();
      await story.until("it has ended", () => engine.events.some(({ kind }) => kind === "settled"));
      await engine.journal.stop();
    }
    assertSame(costs[0], costs[1]);
    const [small = 0, large = 0] = claims;
    assert.ok(large <= small * 1.1 + 200, `${small} bytes claimed became ${large}`);
  },

  "J10: asking what became of an operation costs the same with 3,000 entries behind it as with 3": async (story) => {
    const process = await story.engine({ kinds: { job: { run: async () => "done" } } });
    const [costs, statuses]: [Traffic[], unknown[]] = [[], []];
    for (const [key, behind] of [
      ["small", 3],
      ["large", 3_000],
    ] as const) {
      const id = await accept(process, key, job(key));
      await story.ends(process, key, id);
      await change(process, key, { entries: noted(behind) });
      // Of the last one the record itself tells how it ended.
      await story.ends(process, key, await accept(process, key, job("another")));
      const asked = async () => statuses.push(await process.journal.operation(key, id));
      costs.push(await process.store.traffic(asked));
    }
    assertSame(costs[0], costs[1]);
    for (const status of statuses) assert.equal((status as OperationStatus | undefined)?.status, "succeeded");
  },

  "J10: an operation without steps costs two commits, every step one more, and nothing else is asked of the store":
    async (story) => {
      const run = async (operation: Operation) => {
        for (let step = 0; step < Number(operation.input); step++) await operation.step(`step ${step}`, () => step);
      };
      const process = await story.engine({ kinds: { job: { run } } });
      for (const steps of [0, 1, 3]) {
        const { calls } = await process.store.traffic(async () => {
          await process.journal.transact(
            `k${steps}`,
            () => ({ result: null, change: { accept: [{ kind: "job", input: steps }] } }),
            { by: ann, likelyNew: true },
          );
          await story.until("it has ended", () =>
            process.events.some((event) => event.kind === "settled" && event.key === `k${steps}`),
          );
          await story.quiet();
        }, ["claim", "reap"]);
        assert.deepEqual(calls, { commit: 2 + steps });
      }
    },

  "J10: the record stays small, however many operations are queued": async (story) => {
    const process = await story.process({ kinds: { job: { run: async () => 1 } } });
    const ids = await acceptAll(
      process,
      "k",
      numbered(2_000).map((name) => job(name, later)),
    );
    const bytes = (await story.record(process, "k")).state.length;
    assert.ok(bytes < 40_000, `${bytes} bytes`);
    assert.equal((await process.journal.operation("k", ids[1_999] ?? ""))?.status, "open");
  },

  "J10: the record stays small, also if many operations are put in front": async (story) => {
    const process = await story.process({ kinds: { job: { run: async () => 1 } } });
    const inFront = (chunk: string) => numbered(100, chunk).map((name) => job(name, { ...later, place: "front" }));
    for (const chunk of ["0", "1"]) await acceptAll(process, "k", inFront(chunk));
    await assert.rejects(acceptAll(process, "k", inFront("2")), { code: "queue-full" });
    const bytes = (await story.record(process, "k")).state.length;
    assert.ok(bytes < 256 * 400, `${bytes} bytes of state`);
  },

  "J10: starting costs the same with 1,000 resources that are not due as with 10": async (story) => {
    const kinds = { job: { run: async () => 1 } };
    const process = await story.process({ kinds });
    const costs: Traffic[] = [];
    for (const count of [10, 1_000]) {
      await Promise.all(numbered(count, `${count}/`).map((key) => accept(process, key, job("a", later))));
      const engine = await story.process({ kinds });
      costs.push(
        await engine.store.traffic(async () => {
          await engine.journal.start();
          await story.quiet();
        }, []),
      );
      await engine.journal.kill();
    }
    assertSame(costs[0], costs[1]);
  },
};

function isClaimed(answer: unknown): boolean {
  return (answer as ClaimAnswer).claimed.length > 0;
}

/** Prepares a small and a large resource, and compares what a process that knows neither pays for a read and for an accept. */
async function costsTheSame(story: Story, prepare: (process: Process, key: string) => Promise<unknown>): Promise<void> {
  const kinds = { job: { run: async () => 1 } };
  const author = await story.process({ kinds });
  for (const key of ["small", "large"]) await prepare(author, key);
  const process = await story.process({ kinds });
  const costs: Traffic[][] = [];
  for (const key of ["small", "large"]) {
    costs.push([
      await process.store.traffic(() => read(process, key)),
      await process.store.traffic(() => accept(process, key, job("one more", later))),
    ]);
  }
  const [small = [], large = []] = costs;
  for (const [index, cost] of small.entries()) assertSame(cost, large[index]);
  assert.deepEqual(large[0]?.calls, { read: 1 });
  assert.deepEqual(large[1]?.calls, { read: 1, commit: 1 });
}

/** The same calls, and the same bytes but for longer numbers. */
function assertSame(small: Traffic | undefined, large: Traffic | undefined): void {
  assert.ok(small !== undefined && large !== undefined);
  assert.deepEqual(large.calls, small.calls);
  assert.ok(large.bytes <= small.bytes * 1.1 + 200, `${small.bytes} bytes became ${large.bytes}`);
}

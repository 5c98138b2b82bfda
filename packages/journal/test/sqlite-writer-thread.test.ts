import { closeSync, openSync, readSync, statSync } from "node:fs";
import type { Worker } from "node:worker_threads";
import { expect, test, vi } from "vitest";
import { databasePath, newRecord, openStore } from "./sqlite-fixture.js";

const workers = vi.hoisted((): Worker[] => []);

vi.mock("node:worker_threads", async (original) => {
  const real = await original<typeof import("node:worker_threads")>();
  class SeenWorker extends real.Worker {
    constructor(...parameters: ConstructorParameters<typeof Worker>) {
      super(...parameters);
      workers.push(this);
    }
  }
  return { ...real, Worker: SeenWorker };
});

test("if the writer thread dies, callers are told that the outcome is not known, and the next ones get a new thread", async () => {
  const store = await openStore(await databasePath());
  await store.commit(newRecord("before"));
  const under = Promise.allSettled([store.commit(newRecord("under way 1")), store.commit(newRecord("under way 2"))]);
  await new Promise((resolve) => setImmediate(resolve));
  await workers.at(-1)?.terminate();
  const outcomes = await under;
  for (const outcome of outcomes) {
    // Whoever was quicker: the commit or the end of the thread.
    if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "store-unavailable" });
  }
  expect(await store.commit(newRecord("after"))).toMatchObject({ kind: "committed" });
  expect(await store.read("before", [])).toBeDefined();
  for (const [n, outcome] of outcomes.entries()) {
    if (outcome.status === "fulfilled") expect(await store.read(`under way ${n + 1}`, [])).toBeDefined();
  }
});

test("a writer thread that keeps dying is not started again and again", async () => {
  const store = await openStore(await databasePath());
  const started = workers.length;
  for (let n = 0; n < 10; n++) {
    const commit = Promise.allSettled([store.commit(newRecord(`k${n}`))]);
    await new Promise((resolve) => setImmediate(resolve));
    await workers.at(-1)?.terminate();
    await commit;
  }
  await expect(store.commit(newRecord("k"))).rejects.toMatchObject({
    code: "store-unavailable",
    message: expect.stringContaining("keeps ending"),
  });
  expect(workers.length - started).toBeLessThanOrEqual(3);
  expect(await store.find({ after: null, limit: 1 })).toBeDefined();
});

test("the log is started over again and again while commits go on", async () => {
  const path = await databasePath();
  const store = await openStore(path, { synchronous: "normal" });
  const body = JSON.stringify("x".repeat(100_000));
  const started = startsOfLog(path);
  for (let round = 0; startsOfLog(path) < started + 2; round++) {
    const keys = Array.from({ length: 64 }, (_, n) => `${round % 10}/${n}`);
    await Promise.all(
      keys.map(async (key) => {
        const seq = (await store.read(key, []))?.record.seq ?? 0;
        const expected = seq === 0 ? null : { seq, epoch: 0 };
        await store.commit(newRecord(key, { expected, state: body, deleteEntries: [seq] }));
      }),
    );
  }
  expect(statSync(`${path}-wal`).size).toBeLessThan(300_000_000);
});

/** SQLite counts in the log's header how often it was started over. */
function startsOfLog(path: string): number {
  const header = Buffer.alloc(16);
  const file = openSync(`${path}-wal`, "r");
  readSync(file, header, 0, 16, 0);
  closeSync(file);
  return header.readUInt32BE(12);
}

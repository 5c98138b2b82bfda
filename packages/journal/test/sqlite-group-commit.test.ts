import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { databasePath, newRecord, openStore } from "./sqlite-fixture.js";

test("J12: commits that are asked for together share durable writes", async () => {
  const path = await databasePath();
  const store = await openStore(path);
  await store.commit(newRecord("starts the log"));
  const before = { ...store.stats(), written: committedTransactions(path) };
  await Promise.all(Array.from({ length: 256 }, (_, n) => store.commit(newRecord(`k${n}`))));
  const { requests, transactions } = store.stats();
  expect(requests - before.requests).toBe(256);
  expect(transactions - before.transactions).toBeLessThanOrEqual(2);
  expect(committedTransactions(path) - before.written).toBe(transactions - before.transactions);
});

test("J12: 64 callers that go on as they are answered share durable writes", async () => {
  const path = await databasePath();
  const store = await openStore(path);
  await store.commit(newRecord("starts the log"));
  const before = committedTransactions(path);
  const callers = Array.from({ length: 64 }, async (_, caller) => {
    for (let n = 0; n < 10; n++) await store.commit(newRecord(`${caller}/${n}`));
  });
  await Promise.all(callers);
  expect(committedTransactions(path) - before).toBeLessThanOrEqual(40);
});

test("J12: a commit that comes alone is not kept waiting for others", async () => {
  const store = await openStore(await databasePath());
  for (let n = 0; n < 10; n++) await store.commit(newRecord(`k${n}`));
  expect(store.stats()).toEqual({ requests: 10, transactions: 10 });
});

test("what changes nothing costs no durable write", async () => {
  const path = await databasePath();
  const store = await openStore(path);
  await store.commit(newRecord("k"));
  const before = committedTransactions(path);
  const claim = { owner: "o", leaseMs: 1_000, limit: 10, laneRoom: 10, rooms: new Map() };
  expect(await store.claim(claim)).toMatchObject({ claimed: [], nextDueAt: null });
  expect(await store.commit(newRecord("k"))).toEqual({ kind: "conflict" });
  expect(await store.renew("o", [{ key: "k", epoch: 0 }], 1_000)).toEqual([]);
  expect(await store.reap("o")).toBe(0);
  expect(await store.remove("k", { seq: 7, epoch: 0 })).toBe(false);
  expect(committedTransactions(path)).toBe(before);
  expect(store.stats()).toEqual({ requests: 6, transactions: 1 });
});

test("a commit with `wake` wakes listeners once it is durable, others do not", async () => {
  const store = await openStore(await databasePath());
  let woken = 0;
  const stop = store.onWake(() => woken++);
  await store.commit(newRecord("quiet"));
  await store.commit(newRecord("loud", { wake: true }));
  expect(await store.commit(newRecord("loud", { wake: true }))).toEqual({ kind: "conflict" });
  await new Promise((resolve) => setImmediate(resolve));
  expect(woken).toBe(1);
  stop();
  await store.commit(newRecord("unheard", { wake: true }));
  await new Promise((resolve) => setImmediate(resolve));
  expect(woken).toBe(1);
});

test("what is given back or restored wakes listeners, for it may be due and nobody polls", async () => {
  const store = await openStore(await databasePath());
  let woken = 0;
  store.onWake(() => woken++);
  await store.commit(newRecord("k", { dueAt: 0 }));
  const { claimed } = await store.claim({ owner: "o", leaseMs: 60_000, limit: 1, laneRoom: 1, rooms: new Map() });
  await store.release(
    "o",
    claimed.map(({ key, epoch, seq }) => ({ key, epoch, seq, dueAt: "now" })),
  );
  expect(woken).toBe(1);
  await store.setAside("k");
  expect(woken).toBe(1);
  await store.restore("k");
  expect(woken).toBe(2);
  await store.claim({ owner: "o", leaseMs: 60_000, limit: 1, laneRoom: 1, rooms: new Map() });
  expect(await store.reap("other")).toBe(1);
  expect(woken).toBe(3);
});

/**
 * Transactions in the log, counted as SQLite's recovery would: the last frame of each says how large the database is
 * after it.
 */
function committedTransactions(path: string): number {
  const log = readFileSync(`${path}-wal`);
  const [headerBytes, frameHeaderBytes] = [32, 24];
  const frameBytes = frameHeaderBytes + log.readUInt32BE(8);
  const salt = log.subarray(16, 24);
  let count = 0;
  for (let at = headerBytes; at + frameBytes <= log.length; at += frameBytes) {
    if (!log.subarray(at + 8, at + 16).equals(salt)) break;
    if (log.readUInt32BE(at + 4) > 0) count++;
  }
  return count;
}

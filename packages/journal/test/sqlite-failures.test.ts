import { expect, test } from "vitest";
import { JournalError } from "../src/errors.js";
import { databasePath, newRecord, openStore } from "./sqlite-fixture.js";

const large = JSON.stringify("x".repeat(20_000));

test("on a full disk all callers of a batch are told, nothing of it is kept, and it goes on once there is room", async () => {
  const path = await databasePath();
  const store = await openStore(path, { maxPages: 200 });
  const kept: string[] = [];
  let refused: unknown;
  for (let n = 0; refused === undefined; n++) {
    const key = `k${n}`;
    await store.commit(newRecord(key, { state: large })).then(
      () => kept.push(key),
      (error: unknown) => {
        refused = error;
      },
    );
  }
  expect(refused).toBeInstanceOf(JournalError);
  expect(refused).toMatchObject({
    code: "store-unavailable",
    message: expect.stringContaining("no room left"),
    cause: { code: "SQLITE_FULL" },
  });

  const together = Array.from({ length: 20 }, (_, n) => store.commit(newRecord(`together ${n}`, { state: large })));
  for (const outcome of await Promise.allSettled(together)) {
    expect(outcome).toMatchObject({ status: "rejected", reason: { code: "store-unavailable" } });
  }
  const found = await store.find({ after: null, limit: 1_000 });
  expect(found.map(({ key }) => key).sort()).toEqual([...kept].sort());

  const [first = "", second = ""] = kept;
  for (const key of [first, second]) expect(await store.remove(key, { seq: 1, epoch: 0 })).toBe(true);
  expect(await store.commit(newRecord("now there is room", { state: large }))).toMatchObject({ kind: "committed" });
  for (const key of kept.slice(2)) expect((await store.read(key, []))?.record.state).toBe(large);

  await store.close();
  const roomier = await openStore(path);
  for (let n = 0; n < 20; n++) await roomier.commit(newRecord(`later ${n}`, { state: large }));
  expect(await roomier.find({ after: null, limit: 1_000 })).toHaveLength(kept.length - 2 + 1 + 20);
});

test("a change that cannot be stored as it stands is refused by itself, and the others go on", async () => {
  const store = await openStore(await databasePath());
  const wrong = [newRecord("half a millisecond", { dueAt: 0.5 }), newRecord("no lane", { lane: undefined as never })];
  const right = Array.from({ length: 10 }, (_, n) => newRecord(`k${n}`));
  const outcomes = await Promise.allSettled([...wrong, ...right].map((change) => store.commit(change)));
  for (const outcome of outcomes.slice(0, 2)) {
    expect(outcome).toMatchObject({ status: "rejected", reason: { code: "invalid-change" } });
  }
  for (const outcome of outcomes.slice(2)) expect(outcome).toMatchObject({ value: { kind: "committed" } });
  expect(await store.find({ after: null, limit: 100 })).toHaveLength(10);
});

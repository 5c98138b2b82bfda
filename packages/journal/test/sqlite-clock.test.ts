import { afterEach, expect, test, vi } from "vitest";
import { databasePath, newRecord, openStore } from "./sqlite-fixture.js";

const hourMs = 3_600_000;

afterEach(() => {
  vi.restoreAllMocks();
});

test("J6: a machine clock that was set back by hours does not put off what is due", async () => {
  const path = await databasePath();
  const before = await openStore(path);
  const outcome = await before.commit(newRecord("k", { dueAt: (await before.now()) + 50 }));
  const committedAt = outcome.kind === "committed" ? outcome.at : Number.NaN;
  await before.close();

  const realNow = Date.now();
  vi.spyOn(Date, "now").mockReturnValue(realNow - 3 * hourMs);
  const after = await openStore(path);
  expect(await after.now()).toBeGreaterThanOrEqual(committedAt);
  expect(await after.now()).toBeLessThan(realNow + hourMs);
  await vi.waitFor(async () => {
    const { claimed } = await after.claim({ owner: "o", leaseMs: 1_000, limit: 1, laneRoom: 1, rooms: new Map() });
    expect(claimed.map(({ key }) => key)).toEqual(["k"]);
  });
});

test("J6: a machine clock that jumps while the store is open does not move its time", async () => {
  const store = await openStore(await databasePath());
  const before = await store.now();
  vi.spyOn(Date, "now").mockReturnValue(before + 24 * hourMs);
  expect((await store.now()) - before).toBeLessThan(hourMs);
});

test("a test's clock is used as it is and leaves no mark", async () => {
  const path = await databasePath();
  const farAhead = Date.UTC(2200, 0, 1);
  const store = await openStore(path, { clock: () => farAhead });
  expect(await store.commit(newRecord("k"))).toEqual({ kind: "committed", at: farAhead });
  await store.close();
  const real = await openStore(path);
  expect(await real.now()).toBeLessThan(farAhead);
  await real.close();
  const back = await openStore(path, { clock: () => 5 });
  expect(await back.now()).toBe(5);
});

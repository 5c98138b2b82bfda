import { changeOf, newRecord } from "@osbert/journal-suites/conformance";
import { describe, expect, test } from "vitest";
import type { CommitOutcome, Store } from "../src/store.js";
import { MysqlPlace, mysqlUrl } from "./mysql-fixture.js";

describe.skipIf(mysqlUrl === null)("mysql: processes that write at once", () => {
  test("of two processes that create one resource exactly one succeeds, 300 times", () =>
    MysqlPlace.use(async (place) => {
      const stores = [await place.opened(), await place.opened()];
      for (let round = 0; round < 300; round++) {
        const key = `k${round}`;
        // Others come along in the same transaction: the loser of the race must not take them down.
        const outcomes = await Promise.all(
          stores.map(async (store, side) =>
            Promise.all([
              store.commit(newRecord(`${key} of ${side}`)),
              store.commit(newRecord(key, { token: `side ${side}`, state: String(side) })),
            ]),
          ),
        );
        expect(outcomes.map(([own]) => own.kind)).toEqual(["committed", "committed"]);
        const winners = outcomes.flatMap(([, shared], side) => (shared.kind === "committed" ? [side] : []));
        expect(winners).toHaveLength(1);
        const [store] = stores;
        expect((await store?.read(key, []))?.record.state).toBe(String(winners[0]));
        expect((await store?.entries(key, everything))?.map(({ token }) => token)).toEqual([`side ${winners[0]}`]);
      }
    }));

  test("writers that go over the same resources in different orders never fail", () =>
    MysqlPlace.use(async (place) => {
      const stores = await Promise.all([place.opened(), place.opened(), place.opened()]);
      const keys = Array.from({ length: 40 }, (_, index) => `k${index}`);
      await Promise.all(keys.map((key) => stores[0]?.commit(newRecord(key, { dueAt: 0 }))));
      const committed = await Promise.all(stores.map((store, side) => writeAll(store, keys, side)));
      const total = committed.reduce((sum, count) => sum + count, 0);
      const records = (await stores[0]?.find({ after: null, limit: 1_000 })) ?? [];
      expect(records.reduce((sum, { seq }) => sum + seq - 1, 0)).toBe(total);
    }));

  test("claims, renewals, releases and removals beside commits never fail", () =>
    MysqlPlace.use(async (place) => {
      const stores = await Promise.all([place.opened(), place.opened()]);
      const keys = Array.from({ length: 60 }, (_, index) => `k${index}`);
      await Promise.all(keys.map((key) => stores[0]?.commit(newRecord(key, { dueAt: 0 }))));
      const end = performance.now() + 2_000;
      const runs = stores.flatMap((store, side) => [
        run(store, `owner ${side}`, end),
        createAndRemove(store, side, end),
        writeAll(store, keys, side),
      ]);
      await expect(Promise.all(runs)).resolves.toBeDefined();
    }));
});

const everything = { kind: "after", after: 0, limit: 100 } as const;

/** Every resource ten times, each process in its own order; a conflict is a fair answer. */
async function writeAll(store: Store, keys: readonly string[], side: number): Promise<number> {
  let committed = 0;
  for (let round = 0; round < 10; round++) {
    const inOrder = side % 2 === 0 ? keys : [...keys].reverse();
    const outcomes = await Promise.all(inOrder.map((key) => write(store, key)));
    committed += outcomes.filter((outcome) => outcome?.kind === "committed").length;
  }
  return committed;
}

async function write(store: Store, key: string): Promise<CommitOutcome | undefined> {
  const found = await store.read(key, []);
  return found && store.commit(changeOf(found.record, { addLabels: [{ name: "n", value: key }], dueAt: 0 }));
}

async function run(store: Store, owner: string, end: number): Promise<void> {
  while (performance.now() < end) {
    const { claimed } = await store.claim({ owner, leaseMs: 5_000, limit: 20, laneRoom: 20, rooms: new Map() });
    await store.renew(owner, claimed, 5_000);
    await store.release(
      owner,
      claimed.map(({ key, epoch, seq }) => ({ key, epoch, seq, dueAt: "now" })),
    );
  }
}

async function createAndRemove(store: Store, side: number, end: number): Promise<void> {
  for (let round = 0; performance.now() < end; round++) {
    const key = `gone ${side} ${round}`;
    await store.commit(newRecord(key, { putParts: [{ id: "p", body: "1" }] }));
    expect(await store.remove(key, { seq: 1, epoch: 0 })).toBe(true);
  }
}

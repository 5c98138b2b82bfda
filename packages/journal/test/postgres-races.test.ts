import { randomBytes } from "node:crypto";
import pg from "pg";
import { describe, expect, test } from "vitest";
import type { Store, StoredRecord } from "../src/store.js";
import { postgresStore } from "../src/stores/postgres/index.js";
import { change, PostgresPlace, postgresUrl } from "./postgres-support.js";

describe.skipIf(postgresUrl === null)("processes on one PostgreSQL", () => {
  test("of two that change one record at once exactly one wins, 500 times over", () =>
    PostgresPlace.use(async (place) => {
      const stores = [await place.store(), await place.store()];
      await stores[0]?.commit(change("k", null));
      for (let round = 1; round <= 500; round++) {
        const record = await recordOf(stores[round % 2], "k");
        expect(record.seq).toBe(round);
        const changes = stores.map((_, index) => change("k", record, { state: `"${round} by ${index}"` }));
        const outcomes = await Promise.all(stores.map((store, index) => store.commit(changes[index] ?? expect.fail())));
        const winners = changes.filter((_, index) => outcomes[index]?.kind === "committed");
        expect(winners).toHaveLength(1);
        const [entry] = (await stores[0]?.entries("k", { kind: "numbers", seqs: [round + 1] })) ?? [];
        expect(entry?.token).toBe(winners[0]?.token);
        expect((await recordOf(stores[0], "k")).state).toBe(winners[0]?.state);
      }
    }));

  test("a row that changed between a statement's snapshot and its lock is a conflict", () =>
    PostgresPlace.use(async (place) => {
      const store = await place.store();
      await store.commit(change("k", null));
      const record = await recordOf(store, "k");
      const other = await place.pool.connect();
      try {
        // The store's statement starts while the row is locked, and goes on when it has changed.
        await other.query("begin");
        await other.query(`update ${place.schema}.resource set seq = seq + 1 where key = 'k'`);
        const outcome = store.commit(change("k", record, { state: '"late"', putParts: [{ id: "p", body: "1" }] }));
        await waiterOf(place);
        await other.query("commit");
        expect(await outcome).toEqual({ kind: "conflict" });
      } finally {
        other.release();
      }
      expect(await recordOf(store, "k")).toEqual({ ...record, seq: 2 });
      expect(await store.parts("k", { prefix: "", after: null, limit: 9 })).toEqual([]);
    }));

  test("a lease renewed between a statement's snapshot and its lock is kept by the change", () =>
    PostgresPlace.use(async (place) => {
      const store = await place.store();
      await store.commit(change("k", null, { lease: { owner: "o", until: 1_000 }, dueAt: 1_000, epoch: 1 }));
      const record = await recordOf(store, "k");
      const other = await place.pool.connect();
      try {
        await other.query("begin");
        await other.query(`update ${place.schema}.resource set lease_until = 2000, due_at = 2000 where key = 'k'`);
        const outcome = store.commit(change("k", record, { state: '"late"' }));
        await waiterOf(place);
        await other.query("commit");
        expect((await outcome).kind).toBe("committed");
      } finally {
        other.release();
      }
      const now = await recordOf(store, "k");
      expect(now).toEqual({ ...record, seq: 2, state: '"late"', dueAt: 2_000, lease: { owner: "o", until: 2_000 } });
    }));

  test("what is due but locked at this moment is passed over, and looked at again soon", () =>
    PostgresPlace.use(async (place) => {
      const store = await place.store({ clock: () => 1_000 });
      for (const key of ["locked", "free"]) await store.commit(change(key, null, { dueAt: 1 }));
      await store.commit(change("later", null, { dueAt: 9_000 }));
      const other = await place.pool.connect();
      const request = { owner: "o", leaseMs: 5_000, limit: 9, laneRoom: 9, rooms: new Map() };
      try {
        await other.query("begin");
        await other.query(`select from ${place.schema}.resource where key = 'locked' for update`);
        const answer = await store.claim(request);
        expect([answer.claimed.map(({ key }) => key), answer.nextDueAt]).toEqual([["free"], 1_020]);
        await other.query("commit");
      } finally {
        other.release();
      }
      const answer = await store.claim(request);
      expect([answer.claimed.map(({ key }) => key), answer.nextDueAt]).toEqual([["locked"], 6_000]);
    }));

  test("eight that write, claim, renew and release over the same keys lose nothing and never lock each other out", async () => {
    // A database of its own counts its own deadlocks.
    const database = `test_${randomBytes(6).toString("hex")}`;
    const admin = new pg.Client({ connectionString: postgresUrl ?? "" });
    await admin.connect();
    await admin.query(`create database ${database}`);
    try {
      const url = new URL(postgresUrl ?? "");
      url.pathname = database;
      const pools = Array.from({ length: 8 }, () => new pg.Pool({ connectionString: url.href, max: 6 }));
      const stores = pools.map((pool) => postgresStore(pool));
      await Promise.all(stores.map((store) => store.open()));
      const keys = Array.from({ length: 40 }, (_, index) => `k${index}`);
      const committed = await Promise.all(stores.map((store, index) => writeOver(store, keys, index)));
      const total = committed.reduce((sum, count) => sum + count);
      const records = (await stores[0]?.find({ after: null, limit: 100 })) ?? [];
      expect(records.reduce((sum, { seq }) => sum + seq, 0)).toBe(total);
      await Promise.all(stores.map((store) => store.close()));
      await Promise.all(pools.map((pool) => pool.end()));
      const { rows } = await admin.query("select deadlocks from pg_stat_database where datname = $1", [database]);
      expect(rows).toEqual([{ deadlocks: "0" }]);
    } finally {
      await admin.query(`drop database ${database} with (force)`);
      await admin.end();
    }
  });

  test("changes that the server undoes because of a deadlock are run again", () =>
    PostgresPlace.use(async (place) => {
      const store = await place.store();
      for (const key of ["a", "b"]) await store.commit(change(key, null));
      const [a, b] = [await recordOf(store, "a"), await recordOf(store, "b")];
      const other = await place.pool.connect();
      try {
        await other.query("set deadlock_timeout = '1h'"); // The store's side is the one that finds it out.
        await other.query("begin");
        await other.query(`update ${place.schema}.resource set state = '"other"' where key = 'b'`);
        const outcomes = Promise.all([a, b].map((record) => store.commit(change(record.key, record, { state: "1" }))));
        await waiterOf(place);
        await other.query(`update ${place.schema}.resource set state = '"other"' where key = 'a'`);
        await other.query("commit");
        expect((await outcomes).map(({ kind }) => kind)).toEqual(["committed", "committed"]);
      } finally {
        other.release(true);
      }
      expect([(await recordOf(store, "a")).state, (await recordOf(store, "b")).state]).toEqual(["1", "1"]);
    }));
});

/** Answers how many of its commits were committed. */
async function writeOver(store: Store, keys: readonly string[], turn: number): Promise<number> {
  const owner = `owner ${turn}`;
  let committed = 0;
  for (let round = 0; round < 15; round++) {
    const order = keys.toSorted(() => Math.random() - 0.5);
    const outcomes = await Promise.all(
      order.map(async (key) => {
        const found = (await store.read(key, []))?.record ?? null;
        const putParts = [{ id: `p${round % 3}`, body: String(turn) }];
        return store.commit(change(key, found, { dueAt: found === null || round % 2 === 0 ? 0 : "keep", putParts }));
      }),
    );
    committed += outcomes.filter(({ kind }) => kind === "committed").length;
    const { claimed } = await store.claim({ owner, leaseMs: 5, limit: 10, laneRoom: 10, rooms: new Map() });
    const held = claimed.toReversed();
    const [kept] = await Promise.all([store.renew(owner, held, 5), store.reap(owner)]);
    await store.release(
      owner,
      held.filter(({ key }) => kept.includes(key)).map((each) => ({ ...each, dueAt: "now" })),
    );
  }
  return committed;
}

/** Waits until a statement on the place's tables waits for a lock. */
async function waiterOf(place: PostgresPlace): Promise<void> {
  for (;;) {
    const { rowCount } = await place.pool.query(
      "select from pg_stat_activity where wait_event_type = 'Lock' and query like $1",
      [`%${place.schema}%`],
    );
    if (rowCount === 1) return;
  }
}

async function recordOf(store: Store | undefined, key: string): Promise<StoredRecord> {
  const found = await store?.read(key, []);
  if (found === undefined) throw new Error(`${key} must exist`);
  return found.record;
}

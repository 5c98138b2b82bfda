import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { describe, expect, test } from "vitest";
import type { Store, StoredRecord } from "../src/store.js";
import { DueFloors } from "../src/stores/postgres/due-floors.js";
import { change, PostgresPlace, postgresUrl } from "./postgres-support.js";

describe.skipIf(postgresUrl === null)("claims while someone holds an old snapshot", () => {
  test("J10: do not walk over the dead entries of the index again and again", () =>
    PostgresPlace.use(async (place) => {
      const pool = place.newPool();
      const sent = recordClaims(pool);
      const store = await place.store({}, pool);
      await crowd(place);
      await store.claim(request);
      await store.claim(request);
      const [walk, second] = sent;
      const pages = [await pagesOf(place, walk), await pagesOf(place, second)];
      expect(pages[0]).toBeGreaterThan(1_000);
      expect(pages[1]).toBeLessThan(50);
    }));

  test("take at once what this process commits, and what others commit in a known lane", () =>
    PostgresPlace.use(async (place) => {
      const [store, other] = [await place.store(), await place.store()];
      await crowd(place);
      expect(await claimed(store)).toEqual([]);
      const now = await store.now();
      await store.commit(change("in a new lane", null, { lane: "new", dueAt: now }));
      expect(await claimed(store)).toEqual(["in a new lane"]);
      await other.commit(change("from another", null, { lane: "new", dueAt: now }));
      expect(await claimed(store)).toEqual(["from another"]);
      await store.commit(change("long due", null, { lane: "new", dueAt: 1 }));
      expect(await claimed(store)).toEqual(["long due"]);
      await store.commit(change("in a while", null, { lane: "new", dueAt: now + 600_000 }));
      await store.commit(change("sooner", null, { lane: "new", dueAt: now + 60_000 }));
      const { nextDueAt } = await store.claim(request);
      expect(nextDueAt).toBeLessThanOrEqual(now + 60_000);
      await store.setAside("long due");
      await store.restore("long due");
      expect(await claimed(store)).toEqual(["long due"]);
    }));

  test("ask to be called again within five seconds, and find then what nobody could expect", () =>
    PostgresPlace.use(async (place) => {
      const [store, other] = [await place.store(), await place.store()];
      await crowd(place);
      await store.claim(request);
      await other.commit(change("long due in a new lane", null, { lane: "new", dueAt: 1 }));
      for (let found: readonly StoredRecord[] = []; found.length === 0; ) {
        const answer = await store.claim(request);
        found = answer.claimed;
        if (found.length > 0) break;
        const waitMs = (answer.nextDueAt ?? Number.POSITIVE_INFINITY) - answer.now;
        expect(waitMs).toBeGreaterThan(0);
        expect(waitMs).toBeLessThanOrEqual(5_000);
        await sleep(waitMs);
      }
    }));
});

describe("floors of due times", () => {
  const walk = { at: 100_000, entries: 300_000, lanes: new Map([["a", 150_000]]), nextDueAt: 150_000 };

  test("hold for one to five seconds, the longer the more a walk reads", () => {
    let now = 0;
    const floors = new DueFloors(() => now);
    expect(floors.floors([])).toBeUndefined();
    floors.learn(walk);
    expect(floors.floors([])?.forMs).toBe(3_000);
    now += 3_000;
    expect(floors.floors([])).toBeUndefined();
    floors.learn({ ...walk, entries: 2_001 });
    expect(floors.floors([])?.forMs).toBe(1_000);
    floors.learn({ ...walk, entries: 10_000_000 });
    expect(floors.floors([])?.forMs).toBe(5_000);
  });

  test("are below the walk's time and below what was due then", () => {
    const floors = new DueFloors(() => 0);
    floors.learn({ ...walk, lanes: new Map([...walk.lanes, ["b", 7]]) });
    expect(floors.floors(["c"])?.lanes).toEqual(
      new Map([
        ["a", 99_000],
        ["b", 7],
        ["c", 99_000],
      ]),
    );
  });

  test("keep what was set while a walk was under way, and do not hold if that is below them", () => {
    const floors = new DueFloors(() => 0);
    floors.lower("a", 110_000);
    expect(floors.floors([])).toBeUndefined();
    floors.lower("a", 120_000);
    floors.learn(walk);
    expect(floors.floors([])?.dueAts).toEqual([120_000, 150_000]);
    floors.forget();
    expect(floors.floors([])).toBeUndefined();
    floors.lower("a", 98_999);
    floors.learn(walk);
    expect(floors.floors([])).toBeUndefined();
    floors.learn(walk);
    expect(floors.floors([])).toBeDefined();
  });

  test("are forgotten when something is due earlier, or there are too many lanes", () => {
    const floors = new DueFloors(() => 0);
    floors.learn(walk);
    floors.lower("a", 120_000);
    expect(floors.floors([])?.dueAts).toEqual([150_000, 120_000]);
    floors.passed(120_000);
    expect(floors.floors([])?.dueAts).toEqual([150_000]);
    floors.lower(null, 98_999);
    expect(floors.floors([])).toBeUndefined();
    floors.learn(walk);
    for (let lane = 0; lane < 1_001; lane++) floors.add(`lane ${lane}`);
    expect(floors.floors([])).toBeUndefined();
  });
});

const request = { owner: "me", leaseMs: 600_000, limit: 10, laneRoom: 10, rooms: new Map() };

async function claimed(store: Store): Promise<readonly string[]> {
  return (await store.claim(request)).claimed.map(({ key }) => key);
}

/** 40,000 dead entries before the first that lives, half of them due by now, which nothing can clear away until the test ends. */
async function crowd(place: PostgresPlace): Promise<void> {
  const old = await place.newPool().connect();
  place.atEnd(async () => old.release(true));
  await place.pool.query(`
    insert into ${place.schema}.resource (id, key, seq, epoch, lane, due_at, state)
    select i, 'k' || i, 1, 0, 'lane', 1, '{}' from generate_series(1, 400) as i`);
  await old.query("begin isolation level repeatable read");
  await old.query("select from pg_class limit 1");
  const due =
    "(extract(epoch from clock_timestamp()) * 1000)::bigint + case when round % 2 = 0 then 60000 else -60000 end";
  await place.pool.query(`
    do $$ begin
      for round in 1..100 loop update ${place.schema}.resource set due_at = ${due} + round; end loop;
      update ${place.schema}.resource set due_at = 9000000000000;
    end $$`);
}

interface Sent {
  readonly name?: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** The claims that go through a pool, as they are sent. */
function recordClaims(pool: pg.Pool): readonly Sent[] {
  const sent: Sent[] = [];
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (asked: Sent) => unknown;
    Object.assign(client, {
      query(asked: Sent) {
        if (asked.name?.startsWith("osbert claim")) sent.push(asked);
        return query(asked);
      },
    });
  });
  return sent;
}

/** The pages that a claim reads. */
async function pagesOf(place: PostgresPlace, sent: Sent | undefined): Promise<number> {
  const client = await place.pool.connect();
  try {
    await client.query(
      "set enable_seqscan = off; set enable_bitmapscan = off; set plan_cache_mode = force_generic_plan; begin",
    );
    const { rows } = await client.query(`explain (analyze, buffers, format json) ${sent?.text}`, [
      ...(sent?.values ?? []),
    ]);
    await client.query("rollback");
    const { Plan: plan } = rows[0]["QUERY PLAN"][0];
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
  } finally {
    client.release(true);
  }
}

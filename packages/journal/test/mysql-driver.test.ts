import { changeOf, newRecord } from "@osbert/journal-suites/conformance";
import { createPool as createCallbackPool } from "mysql2";
import { createPool, type Pool, type PoolOptions } from "mysql2/promise";
import { describe, expect, expectTypeOf, test } from "vitest";
import { type MysqlPool, mysqlStore } from "../src/stores/mysql/index.js";
import { MysqlPlace, mysqlUrl } from "./mysql-fixture.js";

test("mysql: a pool of mysql2/promise is what the store asks for", () => {
  expectTypeOf<Pool>().toExtend<MysqlPool>();
});

describe.skipIf(mysqlUrl === null)("mysql: the driver", () => {
  const settings: Readonly<Record<string, PoolOptions>> = {
    "as it comes": {},
    "big numbers as texts": { supportBigNumbers: true, bigNumberStrings: true },
    "rows as arrays": { rowsAsArray: true },
    "tables nested": { nestTables: true },
    "no type casts": { typeCast: false },
    "named placeholders": { namedPlaceholders: true },
    "another time zone": { timezone: "+05:00", dateStrings: true },
    "no eval": { disableEval: true },
    "several statements": { multipleStatements: true },
  };
  for (const [name, options] of Object.entries(settings)) {
    test(`works with a pool that is set to: ${name}`, () =>
      MysqlPlace.use(async (place) => {
        const store = await place.opened({}, place.pool(options));
        const before = await store.now();
        await store.commit(newRecord("k", { dueAt: 2 ** 53 - 1, lane: "l", putParts: [{ id: "p", body: "1" }] }));
        const first = await store.read("k", ["p"]);
        expect(first?.record).toEqual({
          key: "k",
          seq: 1,
          epoch: 0,
          state: "{}",
          lane: "l",
          dueAt: 2 ** 53 - 1,
          lease: null,
        });
        expect([...(first?.parts ?? [])]).toEqual([["p", "1"]]);
        const outcome = first && (await store.commit(changeOf(first.record, { dueAt: 1 })));
        expect(outcome?.kind === "committed" && outcome.at >= before && outcome.at <= before + 60_000).toBe(true);
        const { claimed, now } = await store.claim({
          owner: "o",
          leaseMs: 1_000,
          limit: 1,
          laneRoom: 1,
          rooms: new Map(),
        });
        expect(claimed).toMatchObject([{ key: "k", seq: 2, epoch: 1, lease: { owner: "o", until: now + 1_000 } }]);
        const entries = await store.entries("k", { kind: "after", after: 0, limit: 9 });
        expect(entries.map(({ seq, operation }) => [seq, operation])).toEqual([
          [1, null],
          [2, null],
        ]);
      }));
  }

  test("the store's clock is the server's in UTC, whatever time zone the session has", () =>
    MysqlPlace.use(async (place) => {
      const pool = place.pool({ connectionLimit: 1 });
      const store = await place.opened({}, pool);
      const offsets = [];
      for (const zone of ["+00:00", "-11:00", "+13:00"]) {
        await pool.query(`set time_zone = '${zone}'`);
        offsets.push(Math.round(((await store.now()) - Date.now()) / 60_000));
      }
      expect(new Set(offsets).size).toBe(1);
    }));

  test("a pool whose connections are not in utf8mb4 is refused", () =>
    MysqlPlace.use(async (place) => {
      await expect(place.store({}, place.pool({ charset: "latin1" })).open()).rejects.toThrow('charset: "utf8mb4"');
    }));

  test("a pool without a database is refused", () =>
    MysqlPlace.use(async () => {
      const url = new URL(mysqlUrl ?? "");
      url.pathname = "";
      const pool = createPool(url.href);
      await expect(mysqlStore(pool).open()).rejects.toThrow("no database selected");
      await pool.end();
    }));

  test("a pool with callbacks instead of promises is refused", () => {
    const pool = createCallbackPool({ uri: mysqlUrl ?? "" });
    expect(() => mysqlStore(pool as unknown as MysqlPool)).toThrow("mysql2/promise");
    pool.end();
  });
});

import { newRecord } from "@osbert/journal-suites/conformance";
import type { Pool } from "mysql2/promise";
import { describe, expect, test } from "vitest";
import type { Store } from "../src/store.js";
import { MysqlPlace, mysqlUrl } from "./mysql-fixture.js";

// J10. The server counts which rows it has read; with one connection these are the store's own.
describe.skipIf(mysqlUrl === null)("mysql: what statements cost", () => {
  test("a claim reads no backlog of lanes without room, nor what is idle or due later", () =>
    MysqlPlace.use(async (place) => {
      const { store, pool } = await filled(place);
      const request = { owner: "o", leaseMs: 1_000, limit: 5, laneRoom: 2, rooms: new Map([["full", 0]]) };
      const reads = await readsOf(pool, async () => {
        expect((await store.claim(request)).claimed).toHaveLength(2);
      });
      expect(reads).toBeLessThan(100);
    }));

  test("a claim from lanes that share a limit reads about as many rows as it may claim", () =>
    MysqlPlace.use(async (place) => {
      const { store, pool } = await filled(place);
      const request = { owner: "o", leaseMs: 1_000, limit: 5, laneRoom: 1_000, rooms: new Map() };
      const reads = await readsOf(pool, async () => {
        expect((await store.claim(request)).claimed).toHaveLength(5);
      });
      expect(reads).toBeLessThan(150);
    }));

  test("a look that finds nothing to claim reads a few rows", () =>
    MysqlPlace.use(async (place) => {
      const { store, pool } = await filled(place);
      const request = { owner: "o", leaseMs: 1_000, limit: 5, laneRoom: 0, rooms: new Map([["later", 9]]) };
      expect(await readsOf(pool, () => store.claim(request))).toBeLessThan(30);
    }));

  test("reads, pages and commits do not depend on how much there is", () =>
    MysqlPlace.use(async (place) => {
      const { store, pool } = await filled(place);
      const label = { name: "all", value: "1" };
      for (const [most, work] of [
        [20, () => store.read("full 00500", ["p"])],
        [20, () => store.versions(["full 00500", "idle 00001", "nobody"])],
        [60, () => store.find({ after: "full 01000", limit: 10 })],
        [60, () => store.find({ prefix: "idle 00", after: null, limit: 10 })],
        [60, () => store.find({ label, after: "later 00010", limit: 10 })],
        [60, () => store.entries("full 00500", { kind: "after", after: 0, limit: 10 })],
        [60, () => store.parts("full 00500", { prefix: "", after: null, limit: 10 })],
        [60, () => store.commit({ ...newRecord("full 00500"), expected: { seq: 1, epoch: 0 } })],
        [60, () => store.commit(newRecord("new"))],
        [60, () => store.renew("o", [{ key: "full 00500", epoch: 0 }], 1)],
        [60, () => store.setAside("full 00500")],
        [60, () => store.replaceTexts("full 00500", [{ place: { kind: "state", seq: 1 }, from: "{}", to: "[]" }])],
        [60, () => store.replaceTexts("full 00500", [{ place: { kind: "part", id: "p" }, from: "{}", to: "[]" }])],
        [60, () => store.replaceTexts("full 00500", [{ place: { kind: "entry", seq: 1 }, from: "{}", to: "[]" }])],
        [60, () => store.reap("o")],
        [150, () => store.backlog({ limit: 10, sample: 10 })],
        [60, () => store.remove("full 00501", { seq: 1, epoch: 0 })],
      ] as const) {
        expect(await readsOf(pool, work), String(work)).toBeLessThan(most);
      }
    }));

  test("the end of an operation is found without reading the journal", () =>
    MysqlPlace.use(async (place) => {
      const pool = place.pool({ connectionLimit: 1 });
      const store = await place.opened({}, pool);
      const settled = { kind: "settled", operation: "1-a", body: "{}" };
      const others = Array.from({ length: 3_000 }, () => ({ kind: "noted", operation: null, body: "{}" }));
      await store.commit(newRecord("k", { entries: [...others, settled, ...others] }));
      for (const [operation, count] of [
        ["1-a", 1],
        ["2-a", 0],
      ] as const) {
        const reads = await readsOf(pool, async () => {
          expect(await store.entries("k", { kind: "settled", operation })).toHaveLength(count);
        });
        expect(reads).toBeLessThan(20);
      }
    }));

  test.each([
    [20_000, 5],
    [2_000, 50],
    [50, 1_000],
  ])("a commit that deletes reads what it deletes, of %d resources with %d parts and entries each", (count, each) =>
    MysqlPlace.use(async (place) => {
      const pool = place.pool({ connectionLimit: 1 });
      const store = await place.opened({}, pool);
      for (const analyzed of [false, true]) {
        const first = analyzed ? count + 1 : 1;
        await fill(place, first, count, each);
        if (analyzed) for (const table of beside) await place.rows(`analyze table \`${place.prefix}${table}\``);
        const gone = Array.from({ length: Math.min(30, each) }, (_, index) => index + 1);
        for (const [resource, deletions] of [
          { deleteParts: gone.map((id) => `p${id}`) },
          { deleteEntries: gone },
          { removeLabels: [{ name: "n", value: "v" }] },
        ].entries()) {
          const change = {
            ...newRecord(`k${first + resource}`),
            expected: { seq: each, epoch: 1 },
            epoch: 1,
            ...deletions,
          };
          const reads = await readsOf(pool, async () => {
            expect((await store.commit(change)).kind).toBe("committed");
          });
          expect(reads, JSON.stringify(deletions)).toBeLessThan(20 + 3 * gone.length);
        }
        // Those of many at once share statements.
        const many = Array.from({ length: 40 }, (_, index) =>
          store.commit({
            ...newRecord(`k${first + 3 + index}`),
            expected: { seq: each, epoch: 1 },
            epoch: 1,
            deleteParts: gone.map((id) => `p${id}`),
            deleteEntries: gone,
          }),
        );
        expect(await readsOf(pool, () => Promise.all(many))).toBeLessThan(40 * (20 + 6 * gone.length));
      }
    }),
  );
});

describe.skipIf(mysqlUrl === null)("mysql: while somebody holds an old snapshot, as a backup does", () => {
  test("J10: a claim does not look up what is not due any more", () =>
    MysqlPlace.use(async (place) => {
      const store = await place.opened();
      const table = `\`${place.prefix}resource\``;
      await fill(place, 1, 5_000, 1);
      await place.rows(`insert into \`${place.prefix}lane\` values ('l')`);
      // Due long ago, and run by another for hours: it stays the first of its lane.
      const due = (key: string, at: string, owner: string) =>
        place.rows(
          `update ${table} set due_at = ${at}, lease_owner = ${owner}, lease_until = 9e15 where \`key\` = '${key}'`,
        );
      await due("k1", "1", "'another'");
      const backup = await place.pool().getConnection();
      await backup.query("set session transaction isolation level repeatable read");
      await backup.query("start transaction with consistent snapshot");
      for (let round = 0; round < 4; round++)
        await place.rows(`update ${table} set due_at = ${1_000 + round} where \`key\` <> 'k1'`);
      await place.rows(`update ${table} set due_at = ${2 ** 53} where \`key\` <> 'k1'`);
      // The server counts for all of its sessions; the least of some tries is without what others did meanwhile.
      const looks: number[] = [];
      for (let attempt = 2; attempt < 12; attempt++) {
        await place.rows(`update ${table} set due_at = ${100_000 + attempt} where \`key\` = 'k${attempt}'`);
        const before = await pagesRead(place);
        const { claimed } = await store.claim({
          owner: "o",
          leaseMs: 60_000,
          limit: 10,
          laneRoom: 10,
          rooms: new Map(),
        });
        looks.push((await pagesRead(place)) - before);
        expect(claimed.map(({ key }) => key)).toEqual([`k${attempt}`]);
      }
      expect(Math.min(...looks)).toBeLessThan(5_000);
      await backup.query("rollback");
      backup.release();
    }));
});

async function pagesRead(place: MysqlPlace): Promise<number> {
  const [row] = await place.rows("show global status like 'Innodb_buffer_pool_read_requests'");
  return Number(row?.Value);
}

const beside = ["resource", "entry", "part", "label"] as const;

/** Resources from `first` on, each with so many parts and entries and with one label. */
async function fill(place: MysqlPlace, first: number, count: number, each: number): Promise<void> {
  const { prefix } = place;
  // The place has one connection of its own, whose temporary tables these are.
  for (const [table, from, size] of [
    ["resources", first, count],
    ["numbers", 1, each],
  ] as const) {
    await place.rows(`drop temporary table if exists ${table}`);
    await place.rows(`create temporary table ${table} (i int primary key)`);
    const values = Array.from({ length: size }, (_, index) => `(${from + index})`);
    await place.rows(`insert into ${table} values ${values.join(", ")}`);
  }
  for (const sql of [
    `resource\` (id, \`key\`, seq, epoch, lane, due_at, state)
     select i, concat('k', i), ${each}, 1, 'l', 9007199254740992, '{}' from resources`,
    `label\` (resource, name, value, \`key\`) select i, 'n', 'v', concat('k', i) from resources`,
    `part\` (resource, id, body) select r.i, concat('p', n.i), '{}' from resources r cross join numbers n`,
    `entry\` (resource, seq, at, token, kind, body)
     select r.i, n.i, 1, 't', 'noted', '{}' from resources r cross join numbers n`,
  ])
    await place.rows(`insert into \`${prefix}${sql}`);
}

/** 2,000 due in a lane, 1 of which is free elsewhere; 2,000 idle, 2,000 due later. */
async function filled(place: MysqlPlace): Promise<{ readonly store: Store; readonly pool: Pool }> {
  const pool = place.pool({ connectionLimit: 1 });
  const store = await place.opened({ clock: () => 1_000_000 }, pool);
  const all = (lane: string, count: number, dueAt: number | null) =>
    Array.from({ length: count }, (_, index) =>
      store.commit(
        newRecord(`${lane} ${String(index).padStart(5, "0")}`, {
          lane,
          dueAt: dueAt === null ? null : dueAt + index,
          addLabels: [{ name: "all", value: "1" }],
          putParts: [{ id: "p", body: "1" }],
        }),
      ),
    );
  await Promise.all([
    ...all("full", 2_000, 0),
    ...all("idle", 2_000, null),
    ...all("later", 2_000, 2_000_000),
    ...all("free", 3, 5_000),
  ]);
  return { store, pool };
}

async function readsOf(pool: Pool, work: () => Promise<unknown>): Promise<number> {
  const before = await reads(pool);
  await work();
  return (await reads(pool)) - before;
}

async function reads(pool: Pool): Promise<number> {
  const [rows] = await pool.query("show session status like 'Handler_read%'");
  return (rows as unknown as readonly { readonly Value: string }[]).reduce((sum, { Value }) => sum + Number(Value), 0);
}

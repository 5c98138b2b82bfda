import { readFile } from "node:fs/promises";
import { newRecord } from "@osbert/journal-suites/conformance";
import { describe, expect, test } from "vitest";
import { migrations } from "../src/stores/mysql/migrations.js";
import { tablesOf } from "../src/stores/mysql/tables.js";
import { MysqlPlace, mysqlUrl } from "./mysql-fixture.js";
import { dumpSchema } from "./mysql-schema-dump.js";

describe.skipIf(mysqlUrl === null)("mysql: the schema", () => {
  test("the migrations make the schema that is written down in schema.sql", () =>
    MysqlPlace.use(async (place) => {
      await place.opened();
      const expected = new URL("../src/stores/mysql/schema.sql", import.meta.url);
      expect(await dumpSchema(place.admin, place.prefix)).toBe(await readFile(expected, "utf8"));
    }));

  test("a newer schema is refused with a clear sentence, and nothing is changed", () =>
    MysqlPlace.use(async (place) => {
      await place.opened();
      await place.admin.query(`insert into \`${place.prefix}migration\` (id, name, at) values (1000, 'tomorrow', 0)`);
      await place.admin.query(`drop table \`${place.prefix}lane\``);
      const before = await dumpSchema(place.admin, place.prefix);
      for (const migrate of [true, false]) {
        await expect(place.store({ migrate }).open()).rejects.toMatchObject({
          code: "schema-newer",
          message: expect.stringContaining("schema 1000"),
        });
      }
      expect(await dumpSchema(place.admin, place.prefix)).toBe(before);
    }));

  test("without leave to migrate, a schema that is missing is refused and not made", () =>
    MysqlPlace.use(async (place) => {
      await expect(place.store({ migrate: false }).open()).rejects.toMatchObject({ code: "schema-missing" });
      expect(await dumpSchema(place.admin, place.prefix)).toBe("");
      await place.opened();
      await place.opened({ migrate: false });
    }));

  test("processes that start at once migrate once", () =>
    MysqlPlace.use(async (place) => {
      await Promise.all(Array.from({ length: 6 }, () => place.opened()));
      const done = await place.rows(`select id from \`${place.prefix}migration\` order by id`);
      expect(done.map(({ id }) => id)).toEqual(migrations.map(({ id }) => id));
    }));

  test("a migration that a crash cut off is carried on with", () =>
    MysqlPlace.use(async (place) => {
      const [first = ""] = migrations[0]?.statements(tablesOf(place.prefix)) ?? [];
      await place.admin.query(first);
      const store = await place.opened();
      expect((await store.commit(newRecord("k"))).kind).toBe("committed");
    }));

  test("a migration that was cut off before it was written down is done again, index and all", () =>
    MysqlPlace.use(async (place) => {
      await place.opened();
      const whole = await dumpSchema(place.admin, place.prefix);
      await place.admin.query(`delete from \`${place.prefix}migration\` where id > 1`);
      await place.opened();
      expect(await dumpSchema(place.admin, place.prefix)).toBe(whole);
      const done = await place.rows(`select id from \`${place.prefix}migration\` order by id`);
      expect(done.map(({ id }) => id)).toEqual(migrations.map(({ id }) => id));
    }));

  test("migrations are numbered from 1 without gaps, and say what they lock", () => {
    expect(migrations.map(({ id }) => id)).toEqual(migrations.map((_, index) => index + 1));
    for (const { name, locks } of migrations) expect([name, locks].every((text) => text.length > 5)).toBe(true);
  });
});

test("mysql: a table prefix that is no plain name is refused", () => {
  for (const prefix of ["", "a`b", "a b", "1a", "ä", "x".repeat(49)]) expect(() => tablesOf(prefix)).toThrow(TypeError);
  expect(tablesOf("Osbert_1").resource).toBe("`Osbert_1resource`");
});

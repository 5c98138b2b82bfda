import { readFileSync, statSync, writeFileSync } from "node:fs";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { sqliteStore } from "../src/stores/sqlite/index.js";
import { migrations } from "../src/stores/sqlite/migrations.js";
import { migrate } from "../src/stores/sqlite/schema.js";
import { databasePath, newRecord, openStore } from "./sqlite-fixture.js";

test("schema.sql is what the migrations add up to", async () => {
  const path = await databasePath();
  await (await openStore(path)).close();
  const file = new URL("../src/stores/sqlite/schema.sql", import.meta.url);
  if (process.env.OSBERT_UPDATE_SCHEMA === "1") writeFileSync(file, schemaOf(path));
  expect(schemaOf(path)).toBe(readFileSync(file, "utf8"));
});

test("a newer schema is refused with a clear sentence, and the file stays as it is", async () => {
  const path = await databasePath();
  const store = await openStore(path);
  await store.commit(newRecord("k"));
  await store.close();
  change(path, `pragma user_version = ${migrations.length + 1}`);
  const before = readFileSync(path);
  await expect(sqliteStore(path).open()).rejects.toMatchObject({
    code: "schema-newer",
    message: expect.stringMatching(/has schema \d+, written by a newer Osbert; this one knows schemas up to \d+/),
  });
  expect(readFileSync(path)).toEqual(before);
});

test("another program's database is refused, and the file stays as it is", async () => {
  const path = await databasePath();
  change(path, "create table customers (name text)");
  const before = readFileSync(path);
  await expect(sqliteStore(path).open()).rejects.toMatchObject({
    code: "schema-missing",
    message: expect.stringContaining("not a journal of Osbert"),
  });
  expect(readFileSync(path)).toEqual(before);
});

test("a file that is no database is refused, and stays as it is", async () => {
  const path = await databasePath();
  writeFileSync(path, "Dear diary, ".repeat(1_000));
  await expect(sqliteStore(path).open()).rejects.toMatchObject({ code: "unreadable" });
  expect(readFileSync(path, "utf8")).toBe("Dear diary, ".repeat(1_000));
});

test("a folder that is not there is named", async () => {
  const path = `${await databasePath()}/not/there.db`;
  await expect(sqliteStore(path).open()).rejects.toMatchObject({
    code: "store-unavailable",
    message: expect.stringContaining("not/there.db"),
  });
});

test("only the user who started it may read what is stored", async () => {
  const path = await databasePath();
  const mask = process.umask(0);
  try {
    const store = await openStore(path);
    await store.commit(newRecord("k"));
    for (const name of ["", "-wal", "-shm", "-owner"]) {
      expect([name, (statSync(path + name).mode & 0o777).toString(8)]).toEqual([name, "600"]);
    }
  } finally {
    process.umask(mask);
  }
});

test("migrations that fail half-way leave nothing behind", async () => {
  const path = await databasePath();
  const database = new Database(path);
  const broken = { name: "broken", locks: "nothing", sql: "create table half (a); select no_such_function();" };
  expect(() => migrate(database, [...migrations, broken])).toThrow("no_such_function");
  expect(database.prepare("select count(*) from sqlite_master").pluck().get()).toBe(0);
  expect(database.pragma("user_version", { simple: true })).toBe(0);
  migrate(database);
  migrate(database);
  expect(database.pragma("user_version", { simple: true })).toBe(migrations.length);
  database.close();
});

test("every migration says what it locks", () => {
  for (const { name, locks } of migrations)
    expect([name, locks]).toEqual([expect.stringMatching(/./), expect.stringMatching(/./)]);
});

function schemaOf(path: string): string {
  const database = new Database(path, { readonly: true });
  try {
    const texts = database
      .prepare("select sql from sqlite_master where sql is not null order by tbl_name, type desc, name")
      .pluck()
      .all() as string[];
    return texts.map((text) => `${text.replaceAll(/^ {6}/gm, "")};\n`).join("\n");
  } finally {
    database.close();
  }
}

function change(path: string, sql: string): void {
  const database = new Database(path);
  database.exec(sql);
  database.close();
}

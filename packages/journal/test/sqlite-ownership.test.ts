import { readFileSync, symlinkSync } from "node:fs";
import { expect, test } from "vitest";
import { sqliteStore } from "../src/stores/sqlite/index.js";
import { databasePath, endOf, newRecord, openStore, startChild } from "./sqlite-fixture.js";

test("a second process is refused and changes nothing", async () => {
  const path = await databasePath();
  const store = await openStore(path);
  await store.commit(newRecord("k"));
  const before = [path, `${path}-wal`].map((file) => readFileSync(file));
  const child = startChild("hold", path);
  const { value } = await child.lines.next();
  expect(value).toMatch(/^owned-elsewhere: .*journal\.db is in use by another process/);
  expect(await endOf(child.process)).toBe(3);
  expect([path, `${path}-wal`].map((file) => readFileSync(file))).toEqual(before);
  expect(await store.commit(newRecord("still works"))).toMatchObject({ kind: "committed" });
});

test("a store is refused as long as another process owns the file, and opens as soon as that was killed", async () => {
  const path = await databasePath();
  const child = startChild("hold", path);
  expect((await child.lines.next()).value).toBe("open");
  await expect(sqliteStore(path).open()).rejects.toMatchObject({ code: "owned-elsewhere" });
  child.process.kill("SIGKILL");
  expect(await endOf(child.process)).toBe("SIGKILL");
  const store = await openStore(path);
  expect(await store.commit(newRecord("k"))).toMatchObject({ kind: "committed" });
});

test("a second store of this process is refused, by whatever name it calls the file, until the first is closed", async () => {
  const path = await databasePath();
  const first = sqliteStore(path);
  await first.open();
  symlinkSync(path, `${path}-link`);
  for (const name of [path, `${path}-link`, path.replace("/journal", "/./journal")]) {
    await expect(sqliteStore(name).open()).rejects.toMatchObject({
      code: "owned-elsewhere",
      message: expect.stringContaining("another store of this process"),
    });
  }
  expect(await first.commit(newRecord("k"))).toMatchObject({ kind: "committed" });
  await first.close();
  const second = await openStore(`${path}-link`);
  expect((await second.read("k", []))?.record.seq).toBe(1);
});

test("being refused in this process does not free the file for another one", async () => {
  const path = await databasePath();
  await openStore(path);
  await expect(sqliteStore(path).open()).rejects.toMatchObject({ code: "owned-elsewhere" });
  const child = startChild("hold", path);
  expect((await child.lines.next()).value).toMatch(/^owned-elsewhere/);
});

test("a store that could not be opened does not keep the file", async () => {
  const path = await databasePath();
  const broken = sqliteStore(path, { maxPages: 1 });
  await expect(broken.open()).rejects.toMatchObject({ code: "store-unavailable" });
  await openStore(path);
});

test("a store may be opened again after it was closed", async () => {
  const store = sqliteStore(await databasePath());
  await store.open();
  await store.commit(newRecord("k"));
  await store.close();
  await store.close();
  await expect(store.read("k", [])).rejects.toMatchObject({ code: "stopped" });
  await expect(store.commit(newRecord("l"))).rejects.toMatchObject({ code: "stopped" });
  await store.open();
  expect(await store.read("k", [])).toBeDefined();
  await store.close();
});

test("a journal in memory is refused with the way to one", () => {
  expect(() => sqliteStore(":memory:")).toThrow("memoryStore");
});

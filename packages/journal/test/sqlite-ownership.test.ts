import { linkSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import Database from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
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

const tricks: Readonly<Record<string, (path: string) => string>> = {
  "a symbolic link": (path) => {
    symlinkSync(path, `${path}-link`);
    return `${path}-link`;
  },
  "a hard link": (path) => {
    linkSync(path, `${path}-hard`);
    return `${path}-hard`;
  },
  "its new name, after it was renamed while in use": (path) => {
    renameSync(path, `${path}-moved`);
    return `${path}-moved`;
  },
  "its own name, after the -owner file was removed": (path) => {
    rmSync(`${path}-owner`);
    return path;
  },
  "its own name, after the -owner file was put in another place": (path) => {
    renameSync(`${path}-owner`, `${path}-elsewhere`);
    return path;
  },
};

for (const [name, trick] of Object.entries(tricks)) {
  test(`a process that comes to a file in use by ${name} is refused, and so are the ones after it`, async () => {
    const path = await databasePath();
    const store = await openStore(path);
    await store.commit(newRecord("k"));
    const other = trick(path);
    for (let attempt = 0; attempt < 2; attempt++) {
      const child = startChild("hold", other);
      expect((await child.lines.next()).value).toMatch(/^owned-elsewhere: /);
      expect(await endOf(child.process)).toBe(3);
    }
    await expect(sqliteStore(other).open()).rejects.toMatchObject({ code: "owned-elsewhere" });
    // Nor has whoever was refused taken a lock away.
    const child = startChild("hold", other);
    expect((await child.lines.next()).value).toMatch(/^owned-elsewhere: /);
    expect(await store.commit(newRecord("still works"))).toMatchObject({ kind: "committed" });
    expect(await store.read("k", [])).toBeDefined();
  });
}

test("a file whose owner was killed is opened under a new name, if its log is moved along", async () => {
  const path = await databasePath();
  const child = startChild("commit for ever", path);
  expect((await child.lines.next()).value).toBe("open");
  const { value: key } = await child.lines.next();
  child.process.kill("SIGKILL");
  await endOf(child.process);
  for (const file of ["", "-wal"]) renameSync(`${path}${file}`, `${path}-moved${file}`);
  const store = await openStore(`${path}-moved`);
  expect(await store.read(key, [])).toBeDefined();
});

test("a log without its database is refused, not overwritten: it holds what was accepted last", async () => {
  const path = await databasePath();
  const child = startChild("hold", path);
  await child.lines.next();
  child.process.kill("SIGKILL");
  await endOf(child.process);
  renameSync(path, `${path}-moved`);
  const log = readFileSync(`${path}-wal`);
  await expect(sqliteStore(path).open()).rejects.toThrow(/is not there, but its log .*-wal is/);
  expect(readFileSync(`${path}-wal`)).toEqual(log);
  renameSync(`${path}-moved`, path);
  await (await openStore(path)).now();
});

test("a hard link is refused also when nobody has the file open: it would be read without its log", async () => {
  const path = await databasePath();
  await (await openStore(path)).close();
  linkSync(path, `${path}-hard`);
  for (const name of [path, `${path}-hard`]) {
    await expect(sqliteStore(name).open()).rejects.toMatchObject({
      code: "owned-elsewhere",
      message: expect.stringContaining("hard link"),
    });
  }
  rmSync(`${path}-hard`);
  await openStore(path);
});

test("a program that only reads the file does not keep its owner from coming back", async () => {
  const path = await databasePath();
  const first = startChild("hold", path);
  expect((await first.lines.next()).value).toBe("open");
  const reader = new Database(path, { readonly: true });
  onTestFinished(() => void reader.close());
  const count = reader.prepare("select count(*) from resource");
  count.get();
  first.process.kill("SIGKILL");
  await endOf(first.process);
  const second = startChild("hold", path);
  expect((await second.lines.next()).value).toBe("open");
  count.get();
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

import { readdirSync } from "node:fs";
import { dirname } from "node:path";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { databasePath, endOf, newRecord, openStore, startChild } from "./sqlite-fixture.js";

test("J1: every commit that was acknowledged before kill -9 is there", async () => {
  const path = await databasePath();
  for (const acknowledgements of [300, 3_000]) {
    const child = startChild("commit for ever", path);
    const acknowledged: string[] = [];
    for (let line = await child.lines.next(); !line.done; line = await child.lines.next()) {
      if (line.value !== "open") acknowledged.push(line.value);
      if (acknowledged.length === acknowledgements) child.process.kill("SIGKILL");
    }
    expect(await endOf(child.process)).toBe("SIGKILL");
    expect(acknowledged.length).toBeGreaterThanOrEqual(acknowledgements);

    const store = await openStore(path);
    for (const key of acknowledged) {
      const found = await store.read(key, ["part"]);
      expect(found?.record.state).toBe(JSON.stringify({ key }));
      expect(found?.parts.get("part")).toBe("{}");
      expect(await store.entries(key, { kind: "after", after: 0, limit: 9 })).toHaveLength(1);
    }
    const all = await store.find({ after: null, limit: 1_000_000 });
    const labelled = await store.find({ label: { name: "made-by", value: "child" }, after: null, limit: 1_000_000 });
    expect(labelled).toEqual(all);
    for (const { key, seq, epoch } of all) await store.remove(key, { seq, epoch });
    await store.close();
    expect(integrityOf(path)).toBe("ok");
  }
});

test("commits that nobody waits for are not lost when the process ends by itself", async () => {
  const path = await databasePath();
  const child = startChild("commit and leave", path);
  expect(await endOf(child.process)).toBe(0);
  const store = await openStore(path);
  expect(await store.find({ prefix: "left ", after: null, limit: 1_000 })).toHaveLength(200);
});

test("an open store does not keep the process alive", async () => {
  const path = await databasePath();
  const child = startChild("idle", path);
  expect(await endOf(child.process)).toBe(0);
  const store = await openStore(path);
  expect(await store.read("one", [])).toBeDefined();
});

test("closing leaves everything in one file", async () => {
  const path = await databasePath();
  const store = await openStore(path);
  await store.commit(newRecord("k"));
  await store.close();
  expect(readdirSync(dirname(path)).sort()).toEqual(["journal.db", "journal.db-owner"]);
});

function integrityOf(path: string): unknown {
  const database = new Database(path, { readonly: true });
  try {
    return database.pragma("integrity_check", { simple: true });
  } finally {
    database.close();
  }
}

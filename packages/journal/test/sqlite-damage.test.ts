import { closeSync, openSync, writeSync } from "node:fs";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { entryOf, partOf, recordOf } from "../src/stores/sqlite/rows.js";
import { databasePath, newRecord, openStore } from "./sqlite-fixture.js";

test("damage to the rows of one resource is told of that one, and the others go on", async () => {
  const path = await databasePath();
  const store = await openStore(path);
  const body = JSON.stringify("x".repeat(900));
  const keys = Array.from({ length: 200 }, (_, n) => `k${String(n).padStart(3, "0")}`);
  await Promise.all(
    keys.map((key) => store.commit(newRecord(key, { entries: [{ kind: "noted", operation: null, body }] }))),
  );
  await store.close();
  spoilPageOfEntries(path);

  const damaged = await openStore(path);
  const verdicts = await Promise.allSettled(
    keys.map((key) => damaged.entries(key, { kind: "after", after: 0, limit: 9 })),
  );
  const spoiled = keys.filter((_, n) => verdicts[n]?.status === "rejected");
  expect(spoiled.length).toBeGreaterThan(0);
  expect(spoiled.length).toBeLessThan(20);
  for (const verdict of verdicts)
    if (verdict.status === "rejected") expect(verdict.reason).toMatchObject({ code: "unreadable" });

  // In one batch: commits that meet the damage fail, the others do not. (The new entry of a neighbour may belong on
  // the same page.)
  const commits = await Promise.allSettled(
    keys.map((key) => damaged.commit(newRecord(key, { expected: { seq: 1, epoch: 0 }, dueAt: "keep", lease: "keep" }))),
  );
  const refused = commits.filter((commit) => commit.status === "rejected");
  expect(refused.length).toBeGreaterThan(0);
  expect(refused.length).toBeLessThanOrEqual(spoiled.length + 1);
  for (const { reason } of refused) expect(reason).toMatchObject({ code: "unreadable" });
});

test("what is no text is given as one that is no JSON", () => {
  const blob = Buffer.from("{}");
  const record = recordOf([blob, 1, 2, blob, null, blob, "soon", blob]);
  expect(record).toMatchObject({ seq: 1, epoch: 2, dueAt: null, lease: { until: 0 } });
  const texts = [record.state, partOf(["id", blob]).body, partOf(["id", null]).body, partOf(["id", 5]).body];
  texts.push(entryOf([1, 2, "kind", null, "token", blob]).body);
  for (const text of texts) expect(() => JSON.parse(text) as unknown).toThrow(SyntaxError);
});

/** Overwrites a page in the middle of the table of entries. */
function spoilPageOfEntries(path: string): void {
  const database = new Database(path);
  const pages = database
    .prepare("select pageno from dbstat where name = 'entry' and pagetype = 'leaf' order by pageno")
    .pluck()
    .all() as number[];
  const pageBytes = database.pragma("page_size", { simple: true }) as number;
  database.close();
  const file = openSync(path, "r+");
  writeSync(
    file,
    Buffer.alloc(pageBytes, 0xee),
    0,
    pageBytes,
    ((pages[Math.floor(pages.length / 2)] ?? 2) - 1) * pageBytes,
  );
  closeSync(file);
}

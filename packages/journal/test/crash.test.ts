import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  crashSuite,
  pointTable,
  report,
  type TemporaryStore,
  temporaryMysql,
  temporaryPostgres,
  temporarySqlite,
} from "@osbert/journal-suites/crash";
import { describe, expect, inject, test } from "vitest";

const kills = 100;
const minutes = 60_000;

describe("an engine that is killed again and again loses nothing and does nothing twice", () => {
  test("on SQLite", { timeout: 5 * minutes }, () => survives("SQLite", temporarySqlite));

  const url = inject("postgresUrl");
  test.skipIf(url === null)("on PostgreSQL", { timeout: 5 * minutes }, () =>
    survives("PostgreSQL", () => temporaryPostgres(url ?? "")),
  );

  const mysqlUrl = inject("mysqlUrl");
  test.skipIf(mysqlUrl === null)("on MariaDB", { timeout: 5 * minutes }, () =>
    survives("MariaDB", () => temporaryMysql(mysqlUrl ?? "")),
  );
});

test("a third party's store is tested by the address of its module", { timeout: minutes }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "osbert-crash-own-"));
  const module = new URL("crash-own-store.mjs", import.meta.url).href;
  const result = await crashSuite({ store: { module, config: { path: join(folder, "own.db") } }, kills: 5 });
  expect(result.violations).toEqual([]);
  expect(result.operations).toBeGreaterThanOrEqual(40);
  await rm(folder, { recursive: true });
});

async function survives(name: string, open: () => Promise<TemporaryStore>): Promise<void> {
  const store = await open();
  const result = await crashSuite({ store: store.address, kills });
  console.log(`${report(name, result)}\n${pointTable(result)}`);
  expect(result.violations).toEqual([]);
  expect(result.neverReached).toEqual([]);
  expect(result.kills.atPoints + result.kills.atRandom).toBeGreaterThanOrEqual(kills);
  await store.remove(); // Kept when it fails.
}

import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type pg from "pg";
import { describe, expect, test } from "vitest";
import { encryptedStore, newKey, parseKeyRing } from "../src/encryption/index.js";
import { Permanent } from "../src/errors.js";
import { openJournal } from "../src/open-journal.js";
import type { Store } from "../src/store.js";
import { postgresStore } from "../src/stores/postgres/index.js";
import { sqliteStore } from "../src/stores/sqlite/index.js";
import { accept, by, outcomeOf, until } from "./faults-fixture.js";
import { PostgresPlace, postgresUrl } from "./postgres-support.js";
import { databasePath } from "./sqlite-fixture.js";

/** Where secrets come in. Each has a word of its own, so that a test can tell which one got out. */
const secrets = {
  data: "hunter2-data",
  part: "hunter2-part",
  input: "hunter2-input",
  queuedInput: "hunter2-queued",
  result: "hunter2-result",
  stepResult: "hunter2-step",
  description: "hunter2-description",
  retryError: "hunter2-retry",
  failure: "hunter2-failure",
  details: "hunter2-details",
  payload: "hunter2-payload",
  cancelReason: "hunter2-cancel",
  actor: "hunter2-actor",
} as const;

/** Runs a journal through all that writes texts, and leaves some of it open. */
async function plant(store: Store): Promise<void> {
  let failed = false;
  const kinds = {
    work: {
      async run(operation: {
        step(name: string, work: () => string): Promise<string>;
        describe(text: string): void;
        sleep(name: string, ms: number): Promise<void>;
      }) {
        operation.describe(secrets.description);
        await operation.step("make", () => secrets.stepResult);
        if (!failed) {
          failed = true;
          throw new Error(secrets.retryError);
        }
        return secrets.result;
      },
    },
    fail: {
      async run() {
        throw new Permanent(secrets.failure, { details: { password: secrets.details } });
      },
    },
  };
  const journal = await openJournal({ store, kinds, random: () => 0 });
  await journal.start();
  const attribution = { actor: { ...by.actor, subject: secrets.actor } };
  await journal.transact(
    "instance",
    () => ({
      result: null,
      change: {
        data: { password: secrets.data },
        parts: { binding: { password: secrets.part } },
        entries: [{ kind: "noted", payload: { password: secrets.payload } }],
        labels: { plan: "readable-label" },
      },
    }),
    { by: attribution },
  );
  const work = await accept(journal, "instance", { kind: "work", input: { password: secrets.input } });
  const fail = await accept(journal, "instance", { kind: "fail" });
  expect(await outcomeOf(journal, "instance", work)).toMatchObject({ kind: "succeeded" });
  expect(await outcomeOf(journal, "instance", fail)).toMatchObject({ kind: "failed" });
  const later = { kind: "work", input: { password: secrets.queuedInput }, delayMs: 3_600_000 };
  const many = Array.from({ length: 100 }, () => later);
  const { accepted } = await journal.transact("queued", () => ({ result: null, change: { accept: many } }), {
    by: attribution,
  });
  await journal.cancel("queued", accepted[0]?.id ?? "", secrets.cancelReason, attribution);
  await until("it is cancelled", async () => {
    const status = await journal.operation("queued", accepted[0]?.id ?? "");
    return status?.status === "cancelled";
  });
  await journal.stop();
}

function found(dump: string): readonly string[] {
  return Object.entries(secrets).flatMap(([name, secret]) => (dump.includes(secret) ? [name] : []));
}

const ring = parseKeyRing(newKey());
const all = Object.keys(secrets);

describe("secrets in a SQLite file", () => {
  /** The database and the files beside it, as bytes. */
  async function filesAfter(wrap: (store: Store) => Store): Promise<string> {
    const path = await databasePath();
    await plant(wrap(sqliteStore(path)));
    const folder = dirname(path);
    const files = await Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name), "latin1")));
    return files.join("\n");
  }

  test("are found in a journal without encryption, so that the search is one", async () => {
    const dump = await filesAfter((store) => store);
    expect(found(dump)).toEqual(all);
    expect(dump).toContain("readable-label");
  });

  test("are not found in an encrypted one", async () => {
    const dump = await filesAfter((store) => encryptedStore(store, ring));
    expect(found(dump)).toEqual([]);
    expect(dump).toContain("readable-label");
  });
});

describe.skipIf(postgresUrl === null)("secrets in the tables of PostgreSQL", () => {
  async function dumpAfter(place: PostgresPlace, wrap: (store: Store) => Store): Promise<string> {
    await plant(wrap(postgresStore(place.newPool(), { schema: place.schema })));
    return dumpOf(place.pool, place.schema);
  }

  test("are found in a journal without encryption, so that the search is one", () =>
    PostgresPlace.use(async (place) => {
      const dump = await dumpAfter(place, (store) => store);
      expect(found(dump)).toEqual(all);
      expect(dump).toContain("readable-label");
    }));

  test("are not found in an encrypted one", () =>
    PostgresPlace.use(async (place) => {
      const dump = await dumpAfter(place, (store) => encryptedStore(store, ring));
      expect(found(dump)).toEqual([]);
      expect(dump).toContain("readable-label");
    }));
});

/** Every row of every table of a schema as text. */
async function dumpOf(pool: pg.Pool, schema: string): Promise<string> {
  const tables = await pool.query<{ name: string }>(
    "select table_name as name from information_schema.tables where table_schema = $1",
    [schema],
  );
  expect(tables.rows.length).toBeGreaterThan(4);
  const dumps = await Promise.all(
    tables.rows.map(async ({ name }) => (await pool.query(`select t::text as row from ${schema}.${name} as t`)).rows),
  );
  return JSON.stringify(dumps);
}

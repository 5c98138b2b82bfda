import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type StoreUnderTest, storeSuite, type TestRunner } from "@osbert/journal-suites/conformance";
import mysql from "mysql2/promise";
import pg from "pg";
import { describe, expect, inject, test } from "vitest";
import { memoryStore } from "../src/stores/memory.js";
import { mysqlStore } from "../src/stores/mysql/index.js";
import { postgresStore } from "../src/stores/postgres/index.js";
import { sqliteStore } from "../src/stores/sqlite/index.js";
import { encrypted } from "./stores-under-test.js";

const memory: StoreUnderTest = {
  name: "memory",
  async open(clock) {
    const store = memoryStore({ clock });
    return { store, another: async () => store, dispose: async () => {} };
  },
  except: {
    "J11: what the owners of a closed store left behind is freed after a restart":
      "an owner lives as long as its process, and so does the data",
    "J11: the leases of a process that is gone are freed": "there is one process",
  },
};

const sqlite: StoreUnderTest = {
  name: "sqlite",
  oneOwner: "a file has one owner",
  async open(clock) {
    const folder = await mkdtemp(join(tmpdir(), "osbert-store-"));
    const connect = () => sqliteStore(join(folder, "journal.db"), { clock });
    return {
      store: connect(),
      another: async () => connect(),
      dispose: () => rm(folder, { recursive: true, force: true }),
    };
  },
};

/** A schema for each test, a pool for each of its stores. */
function postgres(url: string): StoreUnderTest {
  return {
    name: "postgres",
    async open(clock) {
      const schema = `test_${randomBytes(6).toString("hex")}`;
      const pools: pg.Pool[] = [];
      const connect = () => {
        const pool = new pg.Pool({ connectionString: url, max: 6 });
        pools.push(pool);
        return postgresStore(pool, { schema, clock });
      };
      return {
        store: connect(),
        another: async () => connect(),
        async dispose() {
          await pools[0]?.query(`drop schema if exists ${schema} cascade`);
          await Promise.all(pools.map((pool) => pool.end()));
        },
      };
    },
  };
}

/** Tables of its own for each test, a pool for each of its stores. */
function mariadb(url: string): StoreUnderTest {
  return {
    name: "mysql",
    async open(clock) {
      const prefix = `test_${randomBytes(6).toString("hex")}_`;
      const pools: mysql.Pool[] = [];
      const connect = () => {
        const pool = mysql.createPool({ uri: url, connectionLimit: 8 });
        pools.push(pool);
        return mysqlStore(pool, { prefix, clock });
      };
      return {
        store: connect(),
        another: async () => connect(),
        async dispose() {
          const tables = "select table_name as name from information_schema.tables where table_schema = database()";
          const [rows] = (await pools[0]?.query(tables)) ?? [[]];
          for (const { name } of rows as { name: string }[]) {
            if (name.startsWith(prefix)) await pools[0]?.query(`drop table \`${name}\``);
          }
          await Promise.all(pools.map((pool) => pool.end()));
        },
      };
    },
    except: {
      "J5: a process is woken when another commits work":
        "MySQL cannot tell other sessions anything; they poll twice a second",
      "J5: a process is told when another changes a value, and that it is no work":
        "MySQL cannot tell other sessions anything; they poll twice a second",
    },
  };
}

const runner: TestRunner = {
  test: (name, body) => test(name, body),
  skip: (name, reason) => test.skip(`${name} — ${reason}`),
};

const [postgresUrl, mysqlUrl] = [inject("postgresUrl"), inject("mysqlUrl")];
const subjects: readonly (StoreUnderTest | { readonly name: string; readonly leftOut: string })[] = [
  memory,
  sqlite,
  encrypted(memory),
  encrypted(sqlite),
  postgresUrl ? postgres(postgresUrl) : { name: "postgres", leftOut: "this machine has no PostgreSQL server to start" },
  mysqlUrl ? mariadb(mysqlUrl) : { name: "mysql", leftOut: "this machine has no MariaDB server to start" },
];

for (const subject of subjects) {
  describe(subject.name, () => {
    if ("leftOut" in subject) test.skip(`left out: ${subject.leftOut}`);
    else storeSuite(runner, subject);
  });
}

describe("the store suite", () => {
  const names = (subject: StoreUnderTest) => {
    const [run, skipped]: [string[], Map<string, string>] = [[], new Map()];
    storeSuite({ test: (name) => run.push(name), skip: (name, reason) => skipped.set(name, reason) }, subject);
    return { run, skipped };
  };

  test("an exception that names no test is an error", () => {
    const wrong = { ...memory, except: { "J2: no such test": "why" } };
    expect(() => names(wrong)).toThrow("J2: no such test");
  });

  test("exceptions are skipped with their reason, and tests of several processes where a store has one owner", () => {
    const all = names({ ...memory, except: {} });
    expect(all.skipped.size).toBe(0);
    const [first = ""] = all.run;
    const { run, skipped } = names({ ...memory, except: { [first]: "why" }, oneOwner: "one file" });
    expect(skipped.get(first)).toBe("why");
    expect(skipped.get("J3: processes that claim at once are never given the same resource")).toBe("one file");
    expect([...run, ...skipped.keys()].sort()).toEqual([...all.run].sort());
  });
});

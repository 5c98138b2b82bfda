import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EngineUnderTest, StoreUnderTest } from "@osbert/journal-suites/conformance";
import mysql from "mysql2/promise";
import pg from "pg";
import { encryptedStore, newKey, parseKeyRing } from "../src/encryption/index.js";
import { memoryStore } from "../src/stores/memory.js";
import { mysqlStore } from "../src/stores/mysql/index.js";
import { postgresStore } from "../src/stores/postgres/index.js";
import { type SqliteStore, sqliteStore } from "../src/stores/sqlite/index.js";

/** The stores of this package as the suites take them, each on data of its own for every test. */
export const memory: EngineUnderTest = {
  name: "memory",
  async open(clock) {
    const store = memoryStore({ clock });
    return { store, another: async () => store, dispose: async () => {} };
  },
};

export const sqlite: EngineUnderTest = {
  name: "sqlite",
  oneOwner: "a file has one owner",
  async open(clock) {
    const folder = await mkdtemp(join(tmpdir(), "osbert-store-"));
    const stores: SqliteStore[] = [];
    const connect = () => {
      const store = sqliteStore(join(folder, "journal.db"), { clock });
      stores.push(store);
      return store;
    };
    return {
      store: connect(),
      another: async () => connect(),
      durableCommits: async () => stores.reduce((sum, store) => sum + store.stats().transactions, 0),
      dispose: () => rm(folder, { recursive: true, force: true }),
    };
  },
};

/** A schema for each test, a pool for each of its stores. */
export function postgres(url: string): EngineUnderTest {
  return {
    name: "postgres",
    async open(clock) {
      const schema = `test_${randomBytes(6).toString("hex")}`;
      const pools: pg.Pool[] = [];
      let writes = 0;
      const connect = () => {
        const pool = new pg.Pool({ connectionString: url, max: 6 });
        pool.on("connect", (client) => {
          // Every statement that writes is a transaction of its own.
          watch(client, "query", (query: { readonly text?: string } | string) => {
            const text = typeof query === "string" ? query : (query.text ?? "");
            if (/\b(insert|update|delete)\b/i.test(text)) writes++;
          });
        });
        pools.push(pool);
        return postgresStore(pool, { schema, clock });
      };
      return {
        store: connect(),
        another: async () => connect(),
        durableCommits: async () => writes,
        async dispose() {
          await pools[0]?.query(`drop schema if exists ${schema} cascade`);
          await Promise.all(pools.map((pool) => pool.end()));
        },
      };
    },
  };
}

/** Tables of its own for each test, a pool for each of its stores. */
export function mariadb(url: string): EngineUnderTest {
  return {
    name: "mysql",
    async open(clock) {
      const prefix = `test_${randomBytes(6).toString("hex")}_`;
      const pools: mysql.Pool[] = [];
      let commits = 0;
      const connect = () => {
        const pool = mysql.createPool({ uri: url, connectionLimit: 8 });
        pool.pool.on("connection", (connection) => {
          watch(connection, "query", (statement: { readonly sql?: string } | string) => {
            const sql = typeof statement === "string" ? statement : (statement.sql ?? "");
            if (/^\s*commit\b/i.test(sql)) commits++;
          });
        });
        pools.push(pool);
        return mysqlStore(pool, { prefix, clock });
      };
      return {
        store: connect(),
        another: async () => connect(),
        durableCommits: async () => commits,
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
  };
}

/** The same stores with all their texts encrypted. */
export function encrypted<Subject extends StoreUnderTest>(subject: Subject): Subject {
  const ring = parseKeyRing(newKey());
  return {
    ...subject,
    name: `${subject.name}, encrypted`,
    async open(clock: () => number) {
      const place = await subject.open(clock);
      const another = async () => encryptedStore(await place.another(), ring);
      return { ...place, store: encryptedStore(place.store, ring), another };
    },
  };
}

/** Has a look at what a method is called with. */
function watch<Argument>(target: object, method: string, look: (argument: Argument) => void): void {
  const own = target as Record<string, (...args: unknown[]) => unknown>;
  const original = own[method];
  if (original === undefined) throw new Error(`there is no ${method}`);
  own[method] = (...args) => {
    look(args[0] as Argument);
    return original.apply(target, args);
  };
}

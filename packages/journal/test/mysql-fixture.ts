import { createPool, type Pool, type PoolOptions } from "mysql2/promise";
import { inject } from "vitest";
import type { Store } from "../src/store.js";
import { type MysqlStoreOptions, mysqlStore } from "../src/stores/mysql/index.js";

/** `null` if this machine has no MariaDB server to start; `describe.skipIf` takes it as the reason. */
export const mysqlUrl = inject("mysqlUrl");

/** Tables for one test, pools and stores over them, and a connection beside them. */
export class MysqlPlace {
  readonly prefix = `t${process.pid}_${++places}_`;
  readonly admin = createPool({ uri: mysqlUrl ?? "", connectionLimit: 1 });
  readonly #pools: Pool[] = [this.admin];
  readonly #stores: Store[] = [];
  readonly #threads = new Set<number>();

  /** Runs a test with a place, and clears up after it. */
  static async use(body: (place: MysqlPlace) => Promise<void>): Promise<void> {
    const place = new MysqlPlace();
    try {
      await body(place);
    } finally {
      await place.#dispose();
    }
  }

  pool(options: PoolOptions = {}): Pool {
    const pool = createPool({ uri: mysqlUrl ?? "", ...options });
    pool.on("connection", ({ threadId }) => this.#threads.add(threadId));
    this.#pools.push(pool);
    return pool;
  }

  /** Ends every session that the pools have opened so far, as an operator or a failing server does. */
  async killSessions(): Promise<void> {
    for (const thread of this.#threads) {
      await this.admin.query(`kill ${thread}`).catch(() => {}); // It is gone already.
      this.#threads.delete(thread);
    }
  }

  /** Not yet open. Over a pool of its own, as another process would have it, unless one is given. */
  store(options: MysqlStoreOptions = {}, pool: Pool = this.pool()): Store {
    return mysqlStore(pool, { prefix: this.prefix, ...options });
  }

  async opened(options: MysqlStoreOptions = {}, pool?: Pool): Promise<Store> {
    const store = this.store(options, pool);
    await store.open();
    this.#stores.push(store);
    return store;
  }

  /** What the server answers, beside the store. */
  async rows(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const [rows] = await this.admin.query(sql);
    return rows as readonly Record<string, unknown>[];
  }

  async #dispose(): Promise<void> {
    for (const store of this.#stores) await store.close().catch(() => {});
    for (const name of ["resource", "entry", "part", "label", "lane", "owner", "sequence", "migration"]) {
      await this.admin.query(`drop table if exists \`${this.prefix}${name}\``);
    }
    for (const pool of this.#pools) await pool.end().catch(() => {});
  }
}

let places = 0;

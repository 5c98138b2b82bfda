import { randomBytes } from "node:crypto";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Store } from "@osbert/journal";
import { mysqlStore } from "@osbert/journal/mysql";
import { postgresStore } from "@osbert/journal/postgres";
import { sqliteStore } from "@osbert/journal/sqlite";
import mysql from "mysql2/promise";
import pg from "pg";

export const storeNames = ["SQLite", "PostgreSQL", "MariaDB"] as const;
export type StoreName = (typeof storeNames)[number];

/** Where a benchmark may leave things; whoever started it removes them afterwards. */
export interface Ground {
  readonly folder: string;
  /** Names of schemas and tables on the servers begin with this. */
  readonly prefix: string;
  readonly postgresUrl: string | null;
  readonly mysqlUrl: string | null;
}

/** Where one journal is kept. Plain values, so that it can be told to another process. */
export type Place = SqlitePlace | PostgresPlace | MariadbPlace;
export type SqlitePlace = { readonly store: "SQLite"; readonly path: string };
export type PostgresPlace = { readonly store: "PostgreSQL"; readonly url: string; readonly schema: string };
export type MariadbPlace = { readonly store: "MariaDB"; readonly url: string; readonly prefix: string };

/** A place that nobody used yet. Only stores that take part are asked for, so their servers are there. */
export function newPlace<Name extends StoreName>(ground: Ground, store: Name): Extract<Place, { readonly store: Name }>;
export function newPlace(ground: Ground, store: StoreName): Place {
  const name = `${ground.prefix}${randomBytes(4).toString("hex")}`;
  switch (store) {
    case "SQLite":
      return { store, path: join(ground.folder, `${name}.db`) };
    case "PostgreSQL":
      return { store, url: urlOf(ground.postgresUrl, store), schema: name };
    case "MariaDB":
      return { store, url: urlOf(ground.mysqlUrl, store), prefix: `${name}_` };
  }
}

export interface Connected {
  readonly store: Store;
  /** After the store was closed. */
  readonly end: () => Promise<void>;
}

/** A store on that place, with connections of its own. */
export function connect(place: Place): Connected {
  switch (place.store) {
    case "SQLite":
      return { store: sqliteStore(place.path), end: async () => {} };
    case "PostgreSQL": {
      const pool = new pg.Pool({ connectionString: place.url, max: 6 });
      return { store: postgresStore(pool, { schema: place.schema }), end: () => pool.end() };
    }
    case "MariaDB": {
      const pool = mysql.createPool({ uri: place.url, connectionLimit: 8 });
      return { store: mysqlStore(pool, { prefix: place.prefix }), end: () => pool.end() };
    }
  }
}

/** Makes the tables, for whoever works on them without the store. */
export async function makeTables(place: Place): Promise<void> {
  const { store, end } = connect(place);
  await store.open();
  await store.close();
  await end();
}

/** What a journal takes on disk, with all indexes. */
export async function bytesOf(place: SqlitePlace | PostgresPlace): Promise<number> {
  if (place.store === "SQLite") return (await stat(place.path)).size;
  const pool = new pg.Pool({ connectionString: place.url, max: 1 });
  const { rows } = await pool.query<{ bytes: string }>(
    `select sum(pg_total_relation_size(c.oid)) as bytes from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and c.relkind = 'r'`,
    [place.schema],
  );
  await pool.end();
  return Number(rows[0]?.bytes ?? 0);
}

function urlOf(url: string | null, store: StoreName): string {
  if (url === null) throw new Error(`there is no ${store}`);
  return url;
}

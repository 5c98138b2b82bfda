import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StoreAddress } from "./child-config.js";
import { builtFile } from "./child-process.js";

/** An empty store for one run, and its end. */
export interface TemporaryStore {
  readonly address: StoreAddress;
  /** Any number of processes share it, over connections to a server. */
  readonly server?: StoreServer;
  /** It is a file, which one process has at a time. */
  readonly file?: StoreFile;
  remove(): Promise<void>;
}

/** What the chaos suite does to a server. What is left out does not happen. */
export interface StoreServer {
  readonly host: string;
  readonly port: number;
  /** The same store, but its server is reached at that port of the loopback interface. */
  readonly at: (port: number) => StoreAddress;
  /** Ends the sessions of all processes on this store. Answers how many. */
  readonly endSessions?: () => Promise<number>;
  /**
   * From now on operations are accepted, and whoever appends any other entry meets an error that is no outage: a right is missing, a
   * trigger is broken.
   */
  readonly refuseEntries?: () => Promise<void>;
  readonly acceptEntries?: () => Promise<void>;
  /** Ends the server as a loss of power would, and starts it again. Resolves when it answers. */
  readonly restart?: () => Promise<void>;
}

/** What the chaos suite does with a file: others try to open it. */
export interface StoreFile {
  readonly path: string;
  /** What belongs to a process that has the file, and may be swept away by someone who does not know it. */
  readonly beside: readonly string[];
  /** The store in the file at another path. */
  readonly at: (path: string) => StoreAddress;
}

/** A SQLite file in a new temporary folder. */
export async function temporarySqlite(): Promise<TemporaryStore> {
  const folder = await mkdtemp(join(tmpdir(), "osbert-crash-"));
  const path = join(folder, "journal.db");
  const at = (place: string) => ({ module: builtFile("stores/sqlite.js"), config: { path: place } });
  return {
    address: at(path),
    file: { path, at, beside: [`${path}-owner`] },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** A new schema in a PostgreSQL. */
export async function temporaryPostgres(url: string): Promise<TemporaryStore> {
  const schema = newName();
  const { default: pg } = await import("pg");
  const run = async (sql: string, values: readonly string[] = []) => {
    const client = new pg.Client({ connectionString: url });
    client.on("error", () => undefined); // Told by the call that needed it.
    try {
      await client.connect();
      return await client.query(sql, [...values]);
    } finally {
      await client.end().catch(() => undefined);
    }
  };
  const through = (way: URL) => {
    way.searchParams.set("application_name", schema);
    return { module: builtFile("stores/postgres.js"), config: { url: way.href, schema } };
  };
  return {
    address: through(new URL(url)),
    server: {
      ...placeOf(url, 5432),
      at: (port) => through(elsewhere(url, port)),
      endSessions: async () => {
        const ended = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1";
        return (await run(ended, [schema])).rowCount ?? 0;
      },
      refuseEntries: async () => {
        await run(`
          create function ${schema}.refuse() returns trigger language plpgsql as
          $$ begin
            if new.kind = 'accepted' then return new; end if;
            raise exception 'the crash suite allows no entries now' using errcode = '42501';
          end $$;
          create trigger refuse before insert on ${schema}.entry for each row execute function ${schema}.refuse()`);
      },
      acceptEntries: async () => void (await run(`drop function if exists ${schema}.refuse cascade`)),
    },
    remove: async () => void (await run(`drop schema if exists ${schema} cascade`)),
  };
}

/** A new database on a MariaDB or MySQL. */
export async function temporaryMysql(url: string): Promise<TemporaryStore> {
  const database = newName();
  const { createConnection } = await import("mysql2/promise");
  const run = async (...statements: readonly string[]): Promise<unknown> => {
    const connection = await createConnection({ uri: url, connectTimeout: 10_000 });
    connection.on("error", () => undefined); // Told by the call that needed it.
    try {
      let answer: unknown;
      for (const statement of statements) [answer] = await connection.query(statement);
      return answer;
    } finally {
      await connection.end().catch(() => undefined);
    }
  };
  const through = (way: URL) => {
    way.pathname = `/${database}`;
    return { module: builtFile("stores/mysql.js"), config: { url: way.href } };
  };
  await run(`create database ${database}`);
  return {
    address: through(new URL(url)),
    server: {
      ...placeOf(url, 3306),
      at: (port) => through(elsewhere(url, port)),
      endSessions: async () => {
        const listed = await run(`select id from information_schema.processlist where db = '${database}'`);
        const ids = (listed as readonly Record<string, unknown>[]).map((row) => Number(Object.values(row)[0]));
        // One that has ended meanwhile cannot be killed, and need not be.
        for (const id of ids) await run(`kill ${id}`).catch(() => undefined);
        return ids.length;
      },
      refuseEntries: async () => {
        await run(`create trigger ${database}.refuse before insert on ${database}.osbert_entry for each row
          if new.kind <> 'accepted' then signal sqlstate '45000' set message_text = 'the crash suite allows no entries now'; end if`);
      },
      acceptEntries: async () => void (await run(`drop trigger if exists ${database}.refuse`)),
    },
    remove: async () => void (await run(`drop database if exists ${database}`)),
  };
}

function newName(): string {
  return `osbert_crash_${randomUUID().replaceAll("-", "").slice(0, 12)}`;
}

function placeOf(url: string, usualPort: number): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: port === "" ? usualPort : Number(port) };
}

function elsewhere(url: string, port: number): URL {
  const way = new URL(url);
  way.host = `127.0.0.1:${port}`;
  return way;
}

import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StoreAddress } from "./child-config.js";
import { builtFile } from "./child-process.js";

/** An empty store for one run, and its end. */
export interface TemporaryStore {
  readonly address: StoreAddress;
  remove(): Promise<void>;
}

/** A SQLite file in a new temporary folder. */
export async function temporarySqlite(): Promise<TemporaryStore> {
  const folder = await mkdtemp(join(tmpdir(), "osbert-crash-"));
  return {
    address: { module: builtFile("stores/sqlite.js"), config: { path: join(folder, "journal.db") } },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** A new schema in a PostgreSQL. */
export async function temporaryPostgres(url: string): Promise<TemporaryStore> {
  const schema = `osbert_crash_${randomUUID().replaceAll("-", "").slice(0, 12)}`;
  const remove = async () => {
    const { default: pg } = await import("pg");
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(`drop schema if exists ${schema} cascade`);
    await client.end();
  };
  return { address: { module: builtFile("stores/postgres.js"), config: { url, schema } }, remove };
}

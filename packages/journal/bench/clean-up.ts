import { rm } from "node:fs/promises";
import mysql from "mysql2/promise";
import pg from "pg";
import type { Ground } from "./places.js";

/** Removes all that was left on a ground, whatever became of those who left it. */
export async function cleanUp({ folder, prefix, postgresUrl, mysqlUrl }: Ground): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  if (postgresUrl !== null) await dropSchemas(postgresUrl, prefix);
  if (mysqlUrl !== null) await dropTables(mysqlUrl, prefix);
}

async function dropSchemas(url: string, prefix: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(
      "select nspname as name from pg_namespace where starts_with(nspname::text, $1)",
      [prefix],
    );
    for (const { name } of rows) await client.query(`drop schema ${client.escapeIdentifier(name)} cascade`);
  } finally {
    await client.end();
  }
}

async function dropTables(url: string, prefix: string): Promise<void> {
  const connection = await mysql.createConnection(url);
  try {
    const [rows] = await connection.query<mysql.RowDataPacket[]>(
      "select table_name as name from information_schema.tables where table_schema = database()",
    );
    for (const { name } of rows) {
      if (String(name).startsWith(prefix)) await connection.query(`drop table ${mysql.escapeId(String(name))}`);
    }
  } finally {
    await connection.end();
  }
}

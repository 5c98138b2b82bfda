import { createPool } from "mysql2/promise";
import pg from "pg";
import { describe, expect, inject, test } from "vitest";
import { answersAt, ask, folderWith, run, servicesModule, start } from "./program.js";

// Tables of its own for each run, on the servers that the test run has started.

const schema = `cli_${process.pid}_${Date.now().toString(36)}`;
const [postgresUrl, mysqlUrl] = [inject("postgresUrl"), inject("mysqlUrl")];

async function migrateThenServe(store: string): Promise<void> {
  const yaml = `module: ${servicesModule}\nlisten: { port: 0 }\ncredentials: [{ username: a, password: b }]
store: { env: URL_OF_STORE }\ndatabase: { schema: ${schema}, migrate: false }\n`;
  const cwd = folderWith({ "osbert.yaml": yaml });
  const env = { URL_OF_STORE: store };
  const early = await run(["serve"], { cwd, env });
  expect(early.stderr).toMatch(/^the store \S+ cannot be opened: .*; run `osbert migrate`\n$/);
  expect(early.status).toBe(1);
  for (let time = 0; time < 2; time++) {
    const { status, stdout } = await run(["migrate"], { cwd, env });
    expect(stdout).toMatch(/^the store \S+ is up to date\n$/);
    expect(status).toBe(0);
  }
  const broker = start(["serve"], { cwd, env });
  const url = await answersAt(broker);
  const body = { service_id: "database-id", plan_id: "small-id", organization_guid: "o", space_guid: "s" };
  expect((await ask(url, "PUT", "/v2/service_instances/one", { body })).status).toBe(201);
  broker.signal("SIGTERM");
  expect(await broker.ended).toBe(0);
}

describe.skipIf(postgresUrl === null)("PostgreSQL", () => {
  test("serves only what osbert migrate has made, where it is told not to migrate itself", async () => {
    await migrateThenServe(postgresUrl as string);
    const pool = new pg.Pool({ connectionString: postgresUrl as string });
    const { rows } = await pool.query("select 1 from information_schema.tables where table_schema = $1", [schema]);
    expect(rows.length).toBeGreaterThan(1);
    await pool.query(`drop schema ${schema} cascade`);
    await pool.end();
  });
});

describe.skipIf(mysqlUrl === null)("MySQL and MariaDB", () => {
  test("serve only what osbert migrate has made, where they are told not to migrate themselves", async () => {
    const url = new URL(mysqlUrl as string);
    const pool = createPool(url.href);
    await pool.query(`create database ${schema}`);
    url.pathname = `/${schema}`;
    await migrateThenServe(url.href);
    await pool.query(`drop database ${schema}`);
    await pool.end();
  });
});

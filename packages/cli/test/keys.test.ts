import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, inject, test } from "vitest";
import { answersAt, ask, folderWith, run, servicesModule, start } from "./program.js";

const secret = "planted-5f0c9a";
const body = {
  service_id: "database-id",
  plan_id: "small-id",
  organization_guid: "o",
  space_guid: "s",
  context: { note: secret },
};

async function keyLine(cwd: string, id: string): Promise<string> {
  const { stdout, status } = await run(["keys", "new", id], { cwd });
  expect(status).toBe(0);
  expect(stdout).toMatch(new RegExp(`^${id}:[A-Za-z0-9+/]{43}=\n$`));
  return stdout;
}

/** Provisions an instance with a secret in it, and stops. */
async function serveOnce(cwd: string, env: Readonly<Record<string, string>>, instance: string): Promise<void> {
  const broker = start(["serve"], { cwd, env });
  const url = await answersAt(broker);
  expect((await ask(url, "PUT", `/v2/service_instances/${instance}`, { body })).status).toBe(201);
  broker.signal("SIGTERM");
  expect(await broker.ended).toBe(0);
}

const yaml = `module: ${servicesModule}\nlisten: { port: 0 }\ncredentials: [{ username: a, password: b }]\n`;

describe("keys", () => {
  test("what is wrong with them is told with the place and the line, and nothing of a key", async () => {
    const cwd = folderWith({ "osbert.yaml": `${yaml}keys: { file: keys.txt }\n`, "keys.txt": "first:c2VjcmV0\n" });
    const { stderr, status } = await run(["serve"], { cwd });
    expect(stderr).toMatch(/^osbert.yaml:4:\d+ keys: .*line 1.*32 bytes in base64.*`osbert keys new` makes one\n$/);
    expect(stderr).not.toContain("c2VjcmV0");
    expect(status).toBe(2);
  });

  test("a SQLite store holds nothing readable, and is refused without its keys or with others", async () => {
    const cwd = folderWith({ "osbert.yaml": `${yaml}store: sqlite:broker.db\ndata: .\nkeys: { file: keys.txt }\n` });
    const first = await keyLine(cwd, "first");
    writeFileSync(join(cwd, "keys.txt"), first);
    await serveOnce(cwd, {}, "one");
    expect(readFileSync(join(cwd, "broker.db"), "latin1")).not.toContain(secret);

    writeFileSync(join(cwd, "keys.txt"), await keyLine(cwd, "second"));
    const missing = await run(["serve"], { cwd });
    expect(missing.stderr).toMatch(/^the store \S+ cannot be opened: .*"first"/);
    expect(missing.status).toBe(1);
    writeFileSync(join(cwd, "keys.txt"), await keyLine(cwd, "first"));
    const wrong = await run(["serve"], { cwd });
    expect(wrong.stderr).toMatch(/^the store \S+ cannot be opened: .*"first"/);
    writeFileSync(join(cwd, "osbert.yaml"), `${yaml}store: sqlite:broker.db\ndata: .\n`);
    const without = await run(["serve"], { cwd });
    expect(without.stderr).toMatch(/^the store \S+ cannot be opened: .*encrypted/);
    expect(without.status).toBe(1);
  });

  test("a SQLite store that was plain is encrypted by a rotation while no broker runs on it", async () => {
    const cwd = folderWith({ "osbert.yaml": `${yaml}store: sqlite:broker.db\ndata: .\n` });
    await serveOnce(cwd, {}, "one");
    writeFileSync(join(cwd, "osbert.yaml"), `${yaml}store: sqlite:broker.db\ndata: .\nkeys: { file: keys.txt }\n`);
    writeFileSync(join(cwd, "keys.txt"), await keyLine(cwd, "first"));
    const { stdout, status } = await run(["keys", "rotate"], { cwd });
    expect(stdout).toMatch(/^[1-9]\d* texts of 1 resources in sqlite:\S+ were encrypted anew\n$/);
    expect(status).toBe(0);
    const again = await run(["keys", "rotate"], { cwd });
    expect(again.stdout).toMatch(/^0 texts of 1 resources/);
    const broker = start(["serve"], { cwd });
    const url = await answersAt(broker);
    expect((await ask(url, "PUT", "/v2/service_instances/one", { body })).status).toBe(200);
    const beside = await run(["keys", "rotate"], { cwd });
    expect(beside.stderr).toMatch(/another process/);
    expect(beside.status).toBe(1);
    broker.signal("SIGTERM");
    await broker.ended;
  });
});

const postgresUrl = inject("postgresUrl");

describe.skipIf(postgresUrl === null)("keys on PostgreSQL", () => {
  test("are exchanged while a broker works: the new one first, a rotation, the old one out", async () => {
    const schema = `keys_${process.pid}_${Date.now().toString(36)}`;
    const settings = `${yaml}store: { env: URL_OF_STORE }\ndatabase: { schema: ${schema} }\nkeys: { file: keys.txt }\n`;
    const cwd = folderWith({ "osbert.yaml": settings });
    const env = { URL_OF_STORE: postgresUrl as string };
    const pool = new pg.Pool({ connectionString: postgresUrl as string });
    const [first, second] = [await keyLine(cwd, "first"), await keyLine(cwd, "second")];
    writeFileSync(join(cwd, "keys.txt"), first);
    await serveOnce(cwd, env, "one");

    // The broker knows the new key before anyone writes with it.
    writeFileSync(join(cwd, "keys.txt"), `${first}${second}`);
    const broker = start(["serve"], { cwd, env });
    const url = await answersAt(broker);
    writeFileSync(join(cwd, "keys.txt"), `${second}${first}`);
    const rotation = await run(["keys", "rotate"], { cwd, env });
    expect(rotation.stdout).toMatch(/nothing is under first any more: .* may be taken out\n$/);
    expect((await ask(url, "PUT", "/v2/service_instances/one", { body })).status).toBe(200);
    broker.signal("SIGTERM");
    await broker.ended;

    writeFileSync(join(cwd, "keys.txt"), second);
    await serveOnce(cwd, env, "two");
    const { rows } = await pool.query(
      `select state as text from ${schema}.resource union all select body from ${schema}.part`,
    );
    expect(rows.length).toBeGreaterThan(2);
    expect(JSON.stringify(rows)).not.toContain(secret);
    await pool.query(`drop schema ${schema} cascade`);
    await pool.end();
  });
});

import { execFile, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Client, createClient } from "@osbert/protocol/client";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { EmbeddedPostgres } from "../src/postgres-database/embedded-postgres.js";
import { newFolder, type Program, startProgram, tsx } from "./program.js";

const credentials = { username: "anna", password: "a:secret" };
const env = { OSBERT_CREDENTIALS: "anna:a:secret" };
const waits = { acceptsIncomplete: false };

async function start(folder: string, more: Readonly<Record<string, string>> = {}) {
  const program = startProgram("start.ts", folder, { env: { OSBERT_DATA: folder, ...more } });
  const [, url = ""] = await program.until(/^Osbert answers at (http:\S+), as [\s\S]*Ctrl-C stops it\.$/m);
  return { program, url, client: createClient({ url, credentials }) };
}

async function stop(program: Program, signal: NodeJS.Signals = "SIGINT"): Promise<void> {
  program.child.kill(signal);
  expect(await program.ended, program.printed()).toBe(0);
}

// The commands take curl, which a machine with Node and npm need not have.
const hasCurl = spawnSync("curl", ["--version"]).status === 0;

test.runIf(hasCurl)("the printed commands provision, bind and use a database, and take it down", async () => {
  const folder = await newFolder();
  const { program, url } = await start(folder);
  expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: "ok" });
  const commands = program
    .printed()
    .split("\n")
    .filter((line) => line.startsWith("curl "));
  expect(commands).toHaveLength(4);
  // As from source as everything else here.
  const options = { cwd: folder, env: { ...process.env, NODE_OPTIONS: `--import ${tsx}` } };
  const [provision, bind, use, remove] = commands.map((command) => async () => {
    const { stdout } = await promisify(execFile)("sh", ["-c", command], options);
    return stdout;
  });
  expect(await provision?.()).toBe("{}");
  const { file } = JSON.parse((await bind?.()) ?? "").credentials;
  expect(existsSync(file)).toBe(true);
  expect(await use?.()).toContain("{ id: 1, text: 'a first note' }");
  expect(await use?.()).toContain("{ id: 2, text: 'a first note' }");
  expect(await remove?.()).toBe("{}{}");
  expect(existsSync(file)).toBe(false);
  await stop(program);
});

test("a second start goes on where the first one stopped, however that ended", async () => {
  const folder = await newFolder();
  const first = await start(folder, env);
  const ids = await idsOf(first.client, "slow-cluster");
  await first.client.provision("c1", { ...ids, organization_guid: "o", space_guid: "s", parameters: { machines: 1 } });
  first.program.child.kill("SIGKILL");
  await first.program.ended;
  const second = await start(folder, env);
  expect((await second.client.instanceLastOperation("c1")).body.state).toBe("in progress");
  const remove = await second.client.deprovision("c1", { serviceId: ids.service_id, planId: ids.plan_id });
  expect(remove.status).toBe(202);
  await second.client.waitForInstance("c1", { deleting: true });
  await stop(second.program, "SIGTERM");
});

test.each([
  [{ PORT: "http" }, "PORT must be a number"],
  [{ OSBERT_CREDENTIALS: "anna" }, "OSBERT_CREDENTIALS must look like name:password"],
  [{ OSBERT_POSTGRES_URL: "mysql://root:hidden@h" }, "OSBERT_POSTGRES_URL must look like postgres://"],
])("%o is refused with a sentence", async (wrong, sentence) => {
  const folder = await newFolder();
  const program = startProgram("start.ts", folder, { env: { OSBERT_DATA: folder, ...wrong } });
  expect(await program.ended).toBe(1);
  expect(program.printed()).toContain(sentence);
  expect(program.printed()).not.toContain("hidden");
});

test("where the embedded PostgreSQL cannot run, the broker goes without it and says so", async () => {
  const folder = await newFolder();
  await writeFile(join(folder, "postgres"), "a file where its folder should be");
  const { program, client } = await start(folder, env);
  expect(program.printed()).toMatch(/^It offers sqlite-database, slow-cluster\.\npostgres-database is left out: /m);
  expect(await idsOf(client, "postgres-database")).toEqual({ service_id: "", plan_id: "" });
  await stop(program);
});

// npm has no PostgreSQL for every system; the broker then offers the others, and says so.
const probeFolder = mkdtempSync(join(tmpdir(), "osbert-example-"));
chmodSync(probeFolder, 0o711);
const probe = EmbeddedPostgres.find(join(probeFolder, "postgres"));
rmSync(probeFolder, { recursive: true });

test.skipIf("leftOut" in probe)(
  "the embedded PostgreSQL starts when it is wanted, survives the broker's end, and stops with it when asked",
  { timeout: 120_000 },
  async () => {
    const folder = await newFolder();
    const first = await start(folder, env);
    expect(existsSync(join(folder, "postgres", "data"))).toBe(false);
    const ids = await idsOf(first.client, "postgres-database");
    const place = { organization_guid: "o", space_guid: "s" };
    expect((await first.client.provision("d1", { ...ids, ...place }, waits)).status).toBe(201);
    const { body } = await first.client.bind("d1", "b1", ids, waits);
    const { uri } = (body as { credentials: { uri: string } }).credentials;
    // Whatever happens here, no server stays behind.
    onTestFinished(async () => {
      const server = EmbeddedPostgres.find(join(folder, "postgres"));
      if (server instanceof EmbeddedPostgres) await server.stop();
    });
    expect(await answers(uri)).toBe(true);

    first.program.child.kill("SIGKILL");
    await first.program.ended;
    expect(await answers(uri)).toBe(true);
    const second = await start(folder, env);
    expect((await second.client.bind("d1", "b2", ids, waits)).status).toBe(201);
    await stop(second.program);
    expect(await answers(uri)).toBe(false);

    // Nobody asks for anything: whoever holds credentials can use them again all the same.
    const third = await start(folder, env);
    await expect.poll(() => answers(uri), { timeout: 30_000 }).toBe(true);
    await stop(third.program, "SIGTERM");
    expect(await answers(uri)).toBe(false);
  },
);

async function idsOf(client: Client, name: string): Promise<{ readonly service_id: string; readonly plan_id: string }> {
  const { catalog } = await client.catalog();
  const service = catalog === "unchanged" ? undefined : catalog.services.find((offered) => offered.name === name);
  return { service_id: service?.id ?? "", plan_id: service?.plans[0]?.id ?? "" };
}

async function answers(uri: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: uri });
  client.on("error", () => {});
  const isThere = await client.connect().then(
    () => true,
    () => false,
  );
  await client.end().catch(() => {});
  return isThere;
}

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
    .filter((line) => line.startsWith("curl ") && line.includes("/v2/"));
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

test.runIf(hasCurl)(
  "the printed commands show the marketplace, make and bind a database through the platform, and tell its journal",
  async () => {
    const folder = await newFolder();
    const first = await start(folder, env);
    const [, platform = ""] =
      (await first.program.until(/^A platform that has it registered answers at (http:\S+),/m)) ?? [];
    const commands = first.program
      .printed()
      .split("\n")
      .filter((line) => line.startsWith("curl ") && line.includes("/api/v1/"));
    expect(commands).toHaveLength(3);
    const [market, make, journal] = commands.map((command) => async () => {
      const { stdout } = await promisify(execFile)("sh", ["-c", command], { env: { ...process.env, ...env } });
      return stdout;
    });
    expect(await market?.()).toContain('"name":"sqlite-database"');
    expect((await make?.())?.match(/"result":"accepted"/g)).toHaveLength(2);
    const authorization = `Basic ${Buffer.from("anna:a:secret").toString("base64")}`;
    const database = async (url: string, path = "") =>
      (await fetch(`${url}/api/v1/spaces/demo/instances/my-database${path}`, { headers: { authorization } })).json();
    const bound = async () => ((await database(platform)) as { bindings: { phase: string }[] }).bindings[0]?.phase;
    await expect.poll(bound, { timeout: 30_000 }).toBe("bound");
    const { credentials } = (await database(platform, "/bindings/my-app/credentials")) as {
      credentials: { file: string };
    };
    expect(existsSync(credentials.file)).toBe(true);
    expect(JSON.parse((await journal?.()) ?? "").items.length).toBeGreaterThan(2);
    await stop(first.program);

    // The broker has another port then, and the platform finds it.
    const second = await start(folder, env);
    const [, again = ""] =
      (await second.program.until(/^A platform that has it registered answers at (http:\S+),/m)) ?? [];
    expect(await database(again)).toMatchObject({ phase: "ready" });
    await stop(second.program);
  },
);

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
  await second.client.waitForInstance("c1", { change: "delete" });
  await stop(second.program, "SIGTERM");
});

// A sandbox takes bubblewrap, and sees no programs but those in /usr; without it the broker says that it goes without bundles.
const hasSandbox =
  process.execPath.startsWith("/usr/") &&
  spawnSync("bwrap", ["--unshare-user", "--ro-bind", "/", "/", "true"]).status === 0;

test("a bundle in a folder is offered beside the services in code, or it is said why not", async () => {
  const folder = await newFolder();
  const { program, client } = await start(folder, env);
  if (!hasSandbox) {
    expect(program.printed()).toMatch(/^Bundles are left out: /m);
    return stop(program);
  }
  await expect.poll(async () => (await idsOf(client, "session-secret")).plan_id, { timeout: 30_000 }).not.toBe("");
  const ids = await idsOf(client, "session-secret");
  const place = { organization_guid: "o", space_guid: "s" };
  expect((await client.provision("s1", { ...ids, ...place }, waits)).status).toBe(201);
  const secrets = await Promise.all(
    ["b1", "b2"].map(async (binding) => {
      const { body } = await client.bind("s1", binding, ids, waits);
      return (body as { credentials: { secret: string } }).credentials.secret;
    }),
  );
  expect(secrets[0]).toMatch(/^[\w-]{43}$/);
  expect(secrets[1]).toBe(secrets[0]);
  await stop(program);
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
  expect(program.printed()).toMatch(
    /^It offers sqlite-database, slow-cluster(, and the bundles in \S+)?\.\npostgres-database is left out: /m,
  );
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

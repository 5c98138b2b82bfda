import { execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import pg from "pg";
import { expect, inject, onTestFinished, test } from "vitest";
import { osbertProgram, startOsbert } from "./osbert-program.js";
import { required } from "./required.js";
import { findProgram } from "./server-process.js";
import { type LeftOut, systemPostgres } from "./servers.js";
import { snippetsOf } from "./snippets.js";
import { until } from "./until.js";

// The restore drill of docs/guides/operating.md: its commands are run as they are written there, on a broker at work.

const guide = join(dirname(fileURLToPath(import.meta.url)), "..", "docs", "guides", "operating.md");
const run = promisify(execFile);

/** A store, as the drill's commands see it. */
interface Drill {
  readonly name: string;
  /** What the commands find in their environment. */
  readonly env: NodeJS.ProcessEnv;
  readonly before: string;
  readonly after: string;
}

test("a SQLite file that was backed up while the broker worked is restored, and nothing is lost", {
  timeout: 240_000,
}, async () => {
  const program = findProgram("sqlite3");
  const found = program === undefined ? { leftOut: "no sqlite3 found; apt-get install sqlite3" } : { program };
  if (required("the restore drill on SQLite", found) === undefined) return;
  await practise((data) => ({
    name: "sqlite",
    env: { OSBERT_DATA: data },
    before: "sqlite:broker.db",
    after: "sqlite:broker.db",
  }));
});

test("a PostgreSQL database that was backed up while the broker worked is restored, and nothing is lost", {
  timeout: 240_000,
}, async () => {
  const found = required("the restore drill on PostgreSQL", postgresTools());
  if (found === undefined) return;
  const url = new URL(found.url);
  const database = `drill_${process.pid}`;
  const restored = `${database}_restored`;
  const client = new pg.Client({ connectionString: found.url });
  await client.connect();
  onTestFinished(async () => {
    for (const each of [database, restored]) await client.query(`drop database if exists ${each} with (force)`);
    await client.end();
  });
  await client.query(`create database ${database}`);
  const at = (name: string) => Object.assign(new URL(url), { pathname: `/${name}` }).href;
  const access = { PGHOST: url.hostname, PGPORT: url.port, PGUSER: url.username, PGPASSWORD: url.password };
  const env = { ...access, PGDATABASE: database, PATH: [found.programs, process.env.PATH].join(delimiter) };
  await practise(() => ({ name: "postgres", env, before: at(database), after: at(restored) }));
});

async function practise(drillIn: (data: string) => Drill): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "osbert-drill-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [data, backup] = [join(folder, "data"), join(folder, "backup")];
  mkdirSync(backup);
  const drill = drillIn(data);
  const [node, ...args] = osbertProgram;
  writeFileSync(join(folder, "keys.txt"), execFileSync(node, [...args, "keys", "new"]));
  writeFileSync(join(folder, "services.ts"), services);
  const start = async (store: string) => {
    const settings = `module: services.ts\ndata: data\nstore: "${store}"\nkeys: { file: keys.txt }\n${others}`;
    writeFileSync(join(folder, "osbert.yaml"), settings, { mode: 0o600 });
    const { url, child } = await startOsbert(folder);
    onTestFinished(() => void child.kill("SIGKILL"));
    return { url, child };
  };
  const command = (part: string) =>
    run("sh", ["-euc", blockOf(`${drill.name}-${part}`)], { env: { ...process.env, ...drill.env, BACKUP: backup } });

  const first = await start(drill.before);
  await ask(first.url, "PUT", "waits", "waits");
  await until("the gate", async () => (await lastOperation(first.url, "waits")).description === "at the gate");
  const kept: string[] = [];
  const make = async (url: string) => {
    const id = `quick-${kept.length}`;
    expect((await ask(url, "PUT", id, "quick")).status).toBeLessThan(300);
    kept.push(id);
  };
  for (let at = 0; at < 20; at++) await make(first.url);
  // What was accepted when the backup begins has to be in it; the broker goes on accepting meanwhile.
  const inBackup = [...kept];
  const backingUp = command("backup").then(() => true);
  for (let at = 0; at < 500 && !(await Promise.race([backingUp, make(first.url)])); at++);
  await backingUp;

  first.child.kill("SIGKILL");
  await once(first.child, "exit");
  await command("restore");
  const second = await start(drill.after);
  for (const id of inBackup) {
    expect((await ask(second.url, "GET", id)).status, id).toBe(200);
    expect((await lastOperation(second.url, id)).state, id).toBe("succeeded");
  }
  writeFileSync(join(folder, "gate"), "");
  await until(
    "the open operation to end",
    async () => (await lastOperation(second.url, "waits")).state === "succeeded",
  );
  expect(readFileSync(join(folder, "effects"), "utf8")).toBe("before the gate\nbehind the gate\n");
  expect((await ask(second.url, "DELETE", "quick-0", "quick")).ok).toBe(true);
  await until("the instance to go", async () => (await ask(second.url, "GET", "quick-0")).status === 404);
}

function blockOf(mark: string): string {
  const block = snippetsOf(readFileSync(guide, "utf8")).find(({ marks }) => marks.get("drill") === mark);
  if (block === undefined) throw new Error(`${guide} has no block with drill=${mark}`);
  return block.code;
}

const services = `
import { appendFileSync, existsSync } from "node:fs";
const service = (name, provision) => ({
  id: name, name, description: "a service that " + name, bindable: false, provision,
  plans: { only: { id: name + "-plan", description: "the only one" } },
  async deprovision() {},
});
const effect = (text) => () => appendFileSync("effects", text + "\\n");
export const services = [
  service("quick", async (operation) => void (await operation.step("work", () => "done"))),
  service("waits", async (operation) => {
    await operation.step("before", effect("before the gate"));
    operation.describe("at the gate");
    for (let at = 0; at < 1000 && !existsSync("gate"); at++) await operation.sleep("look again " + at, 300);
    await operation.step("behind", effect("behind the gate"));
  }),
];
`;
const others = `
listen: { port: 0 }
credentials: [{ username: platform, password: secret }]
log: { level: error }
`;

async function ask(url: string, method: string, id: string, service?: string): Promise<Response> {
  const ids = { service_id: service, plan_id: `${service}-plan` };
  const query = method === "DELETE" ? `&${new URLSearchParams(ids as Record<string, string>)}` : "";
  const wait = service === "quick" && method === "PUT" ? "false" : "true";
  return fetch(`${url}/v2/service_instances/${id}?accepts_incomplete=${wait}${query}`, {
    method,
    ...(method === "PUT" && { body: JSON.stringify({ ...ids, organization_guid: "o", space_guid: "s" }) }),
    headers,
  });
}

async function lastOperation(url: string, id: string) {
  const response = await fetch(`${url}/v2/service_instances/${id}/last_operation`, { headers });
  return (await response.json()) as { readonly state?: string; readonly description?: string };
}

const headers = {
  authorization: `Basic ${Buffer.from("platform:secret").toString("base64")}`,
  "content-type": "application/json",
  "x-broker-api-version": "2.17",
};

function postgresTools(): { readonly url: string; readonly programs: string } | LeftOut {
  const [url, programs] = [inject("postgresUrl"), systemPostgres()];
  if (url === null) return { leftOut: "no PostgreSQL found; apt-get install postgresql" };
  if (programs === undefined || !existsSync(join(programs, "pg_dump")))
    return { leftOut: "no pg_dump found; apt-get install postgresql" };
  return { url, programs };
}

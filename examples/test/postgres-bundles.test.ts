import { execFile } from "node:child_process";
import { chmodSync, cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createBroker } from "@osbert/broker";
import { serve } from "@osbert/broker/http";
import { type Action, bundleServices, openBundleSource, openProcessRunner, parseSources } from "@osbert/bundles";
import {
  lintFolder,
  localInput,
  openBundleFolder,
  planNamed,
  type TriedAction,
  withLocalActions,
} from "@osbert/bundles/author";
import { memoryStore } from "@osbert/journal/memory";
import pg from "pg";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { required } from "../../tools/required.js";
import { findProgram } from "../../tools/server-process.js";

// The two bundles that make databases: one is a program, the other a playbook. They promise the same.

const url = inject("postgresUrl");
const never = new AbortController().signal;
const nothing = { state: {}, credentials: null };
const program = fileURLToPath(new URL("../../packages/cli/test/run-main.ts", import.meta.url));
const examples = fileURLToPath(new URL("..", import.meta.url));

/** What an operator gives to both. */
function secretsOf(server: URL): Readonly<Record<string, string>> {
  const { hostname, port, username, password } = server;
  return { host: hostname, port, user: username, password: decodeURIComponent(password) };
}

function tryOptions(server: URL) {
  const runner = { kind: "process", unsandboxed: false } as const;
  return { runner, network: true, secrets: { server: secretsOf(server) }, onProgress: () => undefined };
}

async function login(uri: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: uri });
  // Its session is ended by the server below.
  client.on("error", () => undefined);
  await client.connect();
  onTestFinished(() => client.end().catch(() => undefined));
  return client;
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "osbert-postgres-bundles-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

describe.each([
  { name: "postgres-bundle", programs: { bwrap: "bubblewrap" } },
  { name: "postgres-ansible-bundle", programs: { bwrap: "bubblewrap", "ansible-playbook": "ansible-core" } },
])("$name", ({ name, programs }) => {
  const folder = join(examples, name);

  test("lint has nothing to say", async () => {
    expect((await lintFolder(folder)).problems).toEqual([]);
  });

  // One line says that PostgreSQL is left out, where it is; OSBERT_TEST_REQUIRE=all makes that a failure.
  describe.runIf(url !== null)("on the real server", () => {
    const canRun = () => {
      const missing = Object.entries(programs).filter(([program]) => findProgram(program) === undefined);
      const names = missing.map(([, debian]) => debian).join(" ");
      return required(name, missing.length > 0 ? { leftOut: `apt-get install ${names}` } : {}) !== undefined;
    };

    test("osbert bundle test: every action of its life may run twice", { timeout: 240_000 }, async () => {
      if (!canRun()) return;
      const work = temporaryFolder();
      const secrets = Object.entries(secretsOf(new URL(url ?? ""))).flatMap(([key, text]) => {
        writeFileSync(join(work, key), `${text}\n`);
        return ["--secret", `${key}=${join(work, key)}`];
      });
      const source = ["--conditions=@osbert/source", "--import", import.meta.resolve("tsx"), program];
      const args = [...source, "bundle", "test", folder, "--network", "--plan", "small", ...secrets];
      const { stdout } = await promisify(execFile)(process.execPath, args);
      const passed = ["provision", "bind", "unbind", "update", "deprovision"].map(
        (action) => `${action}: passed, twice\n`,
      );
      expect(stdout).toBe(`${passed.join("")}the bundle passed\n`);
    });

    test("credentials open the database until they are given back, and nothing is left", {
      timeout: 240_000,
    }, async () => {
      if (!canRun()) return;
      const bundle = await openBundleFolder(folder);
      const plan = planNamed(bundle.spec, "small");
      const options = tryOptions(new URL(url ?? ""));
      // Ids may be anything, also what a database, a shell or Ansible would evaluate.
      const ids = { instance: `it's "one"; drop {{ lookup('pipe', 'exit 1') }} $(exit 1)`, binding: "../{{ b }}" };
      await withLocalActions(bundle, options, never, async (tryAction) => {
        const run = async (action: Action): Promise<TriedAction["output"]> => {
          const about = { action, plan, parameters: {}, previousParameters: {}, state: nothing, bindingState: nothing };
          const input = localInput(bundle.spec, { ...about, ...ids, secrets: options.secrets });
          const tried = await tryAction(action, action, input);
          expect([action, tried.end], tried.log).toEqual([action, { kind: "done" }]);
          return tried.output;
        };
        const { state } = await run("provision");
        const { credentials } = await run("bind");
        const client = await login(String(credentials?.uri));
        await client.query("create table item (name text); insert into item values ('one')");
        const ended = new Promise<void>((resolve) => void client.once("end", () => resolve()));
        await run("unbind");
        await ended;
        await expect(login(String(credentials?.uri))).rejects.toThrow(/authentication failed/);
        const { credentials: second } = await run("bind");
        const again = await login(String(second?.uri));
        expect((await again.query("select name from item")).rows).toEqual([{ name: "one" }]);
        await run("unbind");
        await run("deprovision");
        const admin = await login(url ?? "");
        const { rows } = await admin.query("select 1 from pg_database where datname = $1", [state.database]);
        expect(rows).toEqual([]);
      });
    });

    test("a server that does not answer is tried again later", { timeout: 240_000 }, async () => {
      if (!canRun()) return;
      const bundle = await openBundleFolder(folder);
      const plan = planNamed(bundle.spec, "small");
      const options = tryOptions(new URL("postgres://nobody:x@127.0.0.1:1/"));
      const about = { parameters: {}, previousParameters: {}, state: nothing, bindingState: nothing, binding: "b" };
      const { secrets } = options;
      const input = localInput(bundle.spec, { action: "provision", plan, instance: "i", ...about, secrets });
      const { end, log } = await withLocalActions(bundle, options, never, (tryAction) =>
        tryAction("provision", "key", input),
      );
      expect(end, log).toEqual({ kind: "try again", afterSeconds: 10 });
    });

    test("a broker offers it: an instance is made, bound, used and taken down over HTTP", {
      timeout: 240_000,
    }, async () => {
      if (!canRun()) return;
      const call = await startBroker(name);
      const catalog = async () => (await call("GET", "/v2/catalog")).body.services?.[0];
      await expect.poll(catalog, { timeout: 60_000 }).toBeDefined();
      const { id, plans } = await catalog();
      const ids = { service_id: id, plan_id: plans.find((plan: { name: string }) => plan.name === "small").id };
      const query = `?${new URLSearchParams(ids).toString()}`;
      const instance = "/v2/service_instances/one";
      const binding = `${instance}/service_bindings/app`;
      expect(await call("PUT", instance, ids)).toMatchObject({ status: 201 });
      const bound = await call("PUT", binding, ids);
      expect(bound.status).toBe(201);
      const client = await login(bound.body.credentials.uri);
      expect((await client.query("select current_database() as name")).rows).toEqual([
        { name: bound.body.credentials.database },
      ]);
      await client.end();
      expect(await call("DELETE", `${binding}${query}`)).toMatchObject({ status: 200 });
      expect(await call("DELETE", `${instance}${query}`)).toMatchObject({ status: 200 });
      const admin = await login(url ?? "");
      const { database } = bound.body.credentials;
      expect((await admin.query("select 1 from pg_database where datname = $1", [database])).rows).toEqual([]);
    });
  });
});

/** A broker with a folder in which this bundle is, and the account on the server as the operator's secret. */
async function startBroker(name: string) {
  const [bundles, work] = [temporaryFolder(), temporaryFolder()];
  cpSync(join(examples, name), join(bundles, name), { recursive: true });
  chmodSync(bundles, 0o755);
  const parsed = parseSources({ sources: [{ name: "examples", type: "folder", path: bundles }] });
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.faults));
  const ports = {
    readFile: (path: string) => readFile(path, "utf8"),
    environment: () => undefined,
    pushed: { list: async () => [], read: async () => null, fetch: async () => undefined },
    folder: bundles,
  };
  const values = Object.entries(secretsOf(new URL(url ?? ""))).map(
    ([key, text]) => [key, { reveal: () => text }] as const,
  );
  const services = bundleServices({
    sources: await Promise.all(parsed.sources.map((config) => openBundleSource(config, ports))),
    runner: (files) => openProcessRunner({ directory: join(work, "runs"), files }),
    mirror: join(work, "files"),
    limits: { network: true },
    secrets: [{ name: "server", sources: ["examples"], services: ["postgres-.*"], values: new Map(values) }],
  });
  const broker = createBroker({ services, store: memoryStore(), async: { provision: "never", bind: "never" } });
  const served = await serve(broker, { port: 0, credentials: "none" });
  onTestFinished(() => served.close());
  return async (method: string, path: string, ids?: object) => {
    const answer = await fetch(`${served.url}${path}`, {
      method,
      headers: { "x-broker-api-version": "2.17", "content-type": "application/json" },
      ...(ids !== undefined && { body: JSON.stringify({ ...ids, organization_guid: "o", space_guid: "s" }) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
    return { status: answer.status, body: (await answer.json()) as any };
  };
}

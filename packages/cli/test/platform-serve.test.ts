import { readFileSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { generate } from "selfsigned";
import { expect, test } from "vitest";
import { answersAt, folderWith, run, type Started, servicesModule, start } from "./program.js";

interface Asked {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely.
  readonly body: any;
}

async function platformAt(started: Started): Promise<string> {
  return (await started.says(/osbert platform answers at (\S+?);/))[1] ?? "";
}

function asking(url: string, credential: string) {
  return async (method: string, path: string, body?: object): Promise<Asked> => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        authorization: `Basic ${Buffer.from(credential).toString("base64")}`,
        connection: "close",
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text.startsWith("{") ? JSON.parse(text) : text };
  };
}

const environment = { OSBERT_PLATFORM_LISTEN_PORT: "0" };

test("a platform needs no settings: it makes a credential, and gets an instance and a binding from a real broker", async () => {
  const cwd = folderWith({});
  const broker = start(["serve"], {
    cwd,
    env: { OSBERT_MODULE: servicesModule, PORT: "0", OSBERT_CREDENTIALS: "platform:broker-password" },
  });
  const first = start(["platform", "serve"], { cwd, env: environment });
  const [url, brokerUrl] = await Promise.all([platformAt(first), answersAt(broker)]);
  const [, credential = ""] = await first.says(/it is shown only now: (\S+)/);
  const ask = asking(url, credential);
  const authentication = { kind: "basic", username: "platform", password: "broker-password" };
  expect(await ask("PUT", "/api/v1/brokers/own", { url: brokerUrl, authentication })).toMatchObject({
    status: 201,
    body: { health: { state: "ok" }, catalog: { fault: null } },
  });
  const { body: market } = await ask("GET", "/api/v1/offerings");
  const { name: offering, plans } = market.items[0];
  const db = "/api/v1/spaces/team/instances/db";
  expect((await ask("PUT", db, { offering, plan: plans[0].name })).status).toBe(202);
  const phaseOf = async () => (await ask("GET", db)).body.phase;
  await expect.poll(phaseOf, { timeout: 30_000 }).toBe("ready");
  expect((await ask("PUT", `${db}/bindings/app`, {})).status).toBe(202);
  const boundAs = async () => (await ask("GET", `${db}/bindings/app`)).body.phase;
  await expect.poll(boundAs, { timeout: 30_000 }).toBe("bound");
  expect((await ask("GET", `${db}/bindings/app/credentials`)).body).toHaveProperty("credentials");
  const { body: journal } = await ask("GET", `${db}/journal`);
  expect(journal.items.map(({ family }: { family: string }) => family)).toContain("intent");

  first.signal("SIGTERM");
  expect(await first.ended).toBe(0);
  const kept = join(cwd, ".osbert-platform", "credential.json");
  expect(statSync(kept).mode & 0o077).toBe(0);
  expect(readFileSync(kept, "utf8")).not.toContain(credential.split(":")[1] ?? "?");
  expect(first.stderr()).not.toContain("broker-password");

  const second = start(["platform", "serve"], { cwd, env: environment });
  const again = asking(await platformAt(second), credential);
  expect(second.stdout()).not.toContain("it is shown only now");
  expect((await again("GET", db)).body).toMatchObject({ phase: "ready", bindings: [{ name: "app" }] });
  for (const started of [second, broker]) started.signal("SIGTERM");
  expect(await second.ended).toBe(0);
});

test("roles and spaces come from the settings, and change with SIGHUP while it runs", async () => {
  const settings = (spaces: string) => `
listen: { port: 0 }
store: "memory:"
metrics: { enabled: true, credentials: [{ username: watcher, password: w }] }
reload: { watch: false }
credentials:
  - { username: root, password: r, role: operate }
  - { username: alice, password: a, role: change, spaces: ${spaces} }
`;
  const cwd = folderWith({ "osbert-platform.yaml": settings("[team]") });
  const started = start(["platform", "serve"], { cwd });
  const url = await platformAt(started);
  const [root, alice, watcher] = ["root:r", "alice:a", "watcher:w"].map((credential) => asking(url, credential));
  const status = async (ask: typeof root, path: string) => (await ask?.("GET", path))?.status;
  expect(await status(alice, "/api/v1/spaces/team/instances")).toBe(200);
  expect(await status(alice, "/api/v1/spaces/other/instances")).toBe(404);
  expect(await status(alice, "/api/v1/brokers")).toBe(403);
  expect(await status(root, "/api/v1/brokers")).toBe(200);
  expect(await status(watcher, "/api/v1/me")).toBe(401);
  expect(await status(watcher, "/readyz")).toBe(200);
  expect((await watcher?.("GET", "/metrics"))?.body).toContain(
    'osbert_platform_requests_total{route="brokers",status="403"} 1',
  );
  expect((await fetch(`${url}/healthz`)).status).toBe(200);

  writeFileSync(join(cwd, "osbert-platform.yaml"), settings("[other]"));
  started.signal("SIGHUP");
  await started.says(/reloaded \(SIGHUP\): changed credentials/);
  expect(await status(alice, "/api/v1/spaces/team/instances")).toBe(404);
  expect(await status(alice, "/api/v1/spaces/other/instances")).toBe(200);
  started.signal("SIGTERM");
  expect(await started.ended).toBe(0);
});

test("it answers over TLS, and its tables can be brought up to date apart from it", async () => {
  const attributes = [{ name: "commonName", value: "localhost" }];
  const { cert, private: key } = await generate(attributes);
  const yaml =
    "listen: { port: 0 }\ndatabase: { migrate: false }\ntls: { certificate: tls.crt, key: { file: tls.key } }\n";
  const cwd = folderWith({ "p.yaml": yaml, "tls.crt": cert, "tls.key": key });
  const migrated = await run(["platform", "migrate", "p.yaml"], { cwd });
  expect([migrated.status, migrated.stdout]).toEqual([0, expect.stringContaining("is up to date")]);
  const started = start(["platform", "serve", "p.yaml"], { cwd });
  const url = await platformAt(started);
  expect(url).toMatch(/^https:/);
  const { port } = new URL(url);
  const status = await new Promise((resolve, reject) => {
    request({
      host: "127.0.0.1",
      port,
      path: "/healthz",
      ca: cert,
      servername: "localhost",
      checkServerIdentity: () => undefined,
    })
      .on("response", ({ statusCode }) => resolve(statusCode))
      .on("error", reject)
      .end();
  });
  expect(status).toBe(200);
  started.signal("SIGTERM");
  expect(await started.ended).toBe(0);
});

test("what is wrong with the settings is told with its place", async () => {
  const yaml = `
credentials:
  - { username: root, password: r, role: operate, spaces: [a] }
  - { username: alice, password: a, role: chance }
  - { username: bob, role: see }
keys: nonsense
`;
  const started = start(["platform", "serve", "p.yaml"], { cwd: folderWith({ "p.yaml": yaml }) });
  expect(await started.ended).toBe(2);
  const told = started.stderr();
  expect(told).toMatch(/^p\.yaml:4:\d+ credentials\[1\]\.role: must be see, change or operate, not "chance"/m);
  expect(told).not.toContain("nonsense");
});

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { answersAt, ask, folderWith, run, servicesModule, start } from "./program.js";

const planted = {
  platform: "planted-platform-password",
  admin: "planted-admin-password",
  watcher: "planted-watcher-password",
  context: "planted-in-the-context",
};
const ids = { service_id: "database-id", plan_id: "small-id" };
const body = { ...ids, organization_guid: "o", space_guid: "s", context: { note: planted.context } };

/** A collector of traces: what OpenTelemetry sends, as text. */
async function collector(): Promise<{ readonly url: string; readonly received: () => string }> {
  let received = "";
  const server = createServer((request, response) => {
    request.setEncoding("latin1").on("data", (chunk: string) => {
      received += chunk;
    });
    request.on("end", () => response.setHeader("content-type", "application/json").end("{}"));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`, received: () => received };
}

test("a broker is watched and operated with the credentials that the settings name, and nothing written tells a secret", async () => {
  const traces = await collector();
  const cwd = folderWith({
    "osbert.yaml": `module: ${servicesModule}
listen: { port: 0 }
store: sqlite:broker.db
data: .
keys: { env: RING }
credentials: [{ username: platform, password: { env: PLATFORM } }]
admin: { credentials: [{ username: ops, password: { env: ADMIN } }] }
metrics: { enabled: true, credentials: [{ username: prometheus, password: { env: WATCHER } }] }
tracing: { endpoint: "${traces.url}" }
log: { level: debug, format: json }
`,
  });
  const ring = (await run(["keys", "new", "first"], { cwd })).stdout.trim();
  const env = { RING: ring, PLATFORM: planted.platform, ADMIN: planted.admin, WATCHER: planted.watcher };
  const broker = start(["serve"], { cwd, env });
  const url = await answersAt(broker);
  const platform = `platform:${planted.platform}`;
  const admin = `ops:${planted.admin}`;
  const watcher = `prometheus:${planted.watcher}`;
  const status = async (path: string, credential?: string) => {
    const authorization = `Basic ${Buffer.from(credential ?? "").toString("base64")}`;
    return fetch(`${url}${path}`, credential === undefined ? {} : { headers: { authorization } });
  };

  expect((await ask(url, "PUT", "/v2/service_instances/one", { body, credential: platform })).status).toBe(201);
  expect((await status("/healthz")).status).toBe(200);
  for (const path of ["/readyz", "/metrics", "/admin/v1/instances"])
    expect((await status(path)).status, path).toBe(401);
  expect((await status("/admin/v1/instances", platform)).status).toBe(401);
  expect((await ask(url, "GET", "/v2/service_instances/one", { credential: admin })).status).toBe(401);
  expect((await ask(url, "GET", "/v2/service_instances/one", { credential: watcher })).status).toBe(401);
  expect((await status("/readyz", watcher)).status).toBe(200);
  const figures = await (await status("/metrics", watcher)).text();
  expect(figures).toMatch(/osbert_requests_total\{[^}]*service="database"[^}]*\} 1/);

  const operating = { OSBERT_ADMIN_URL: url, OSBERT_ADMIN_LOGIN: admin };
  const listed = await run(["admin", "instances"], { cwd, env: operating });
  expect(listed.stdout).toMatch(/one/);
  // The file belongs to the broker, which encrypts it anew by itself.
  const rotated = await run(["admin", "rotate-keys", "--reason", "a test"], { cwd, env: operating });
  expect(rotated.stdout).toMatch(/^\d+ texts of \d+ resources in the store were encrypted anew/);
  expect(rotated.status).toBe(0);

  broker.signal("SIGTERM");
  expect(await broker.ended).toBe(0);
  const log = broker.stdout() + broker.stderr();
  expect(log).toMatch(/"operation":/);
  expect(log).toMatch(/"msg":"[^"]*rovision/);
  expect(traces.received()).toContain("provision");
  for (const [where, text] of Object.entries({ log, figures, traces: traces.received(), listed: listed.stdout })) {
    for (const secret of [...Object.values(planted), ring, ring.split(":")[1] ?? ""]) {
      expect(text.includes(secret), `${secret} in the ${where}`).toBe(false);
    }
  }
});

test("an admin credential that is a platform's, too, is refused with its place", async () => {
  const cwd = folderWith({
    "osbert.yaml": `module: ${servicesModule}
credentials: [{ username: a, password: same }]
admin: { credentials: [{ username: a, password: same }] }
`,
  });
  const { stderr, status } = await run(["serve"], { cwd });
  expect(stderr).toMatch(/^osbert.yaml:3:\d+ admin.credentials\[0\]: is a platform's credential, too/);
  expect(status).toBe(2);
});

test("a first start that fails keeps no password that nobody has seen", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  onTestFinished(() => void taken.close());
  const { port } = taken.address() as AddressInfo;
  const cwd = folderWith({ "osbert.yaml": `module: ${servicesModule}\ndata: .\nstore: "memory:"\n` });
  const refused = await run(["serve"], { cwd, env: { PORT: String(port) } });
  expect(refused.stderr).toMatch(/is in use/);
  const broker = start(["serve"], { cwd, env: { PORT: "0" } });
  const [, credential = ""] = await broker.says(/shown only now: (\S+)/);
  const url = await answersAt(broker);
  expect((await ask(url, "GET", "/v2/catalog", { credential })).status).toBe(200);
  broker.signal("SIGTERM");
  await broker.ended;
  const again = start(["serve"], { cwd, env: { PORT: "0" } });
  expect((await ask(await answersAt(again), "GET", "/v2/catalog", { credential })).status).toBe(200);
  again.signal("SIGTERM");
  await again.ended;
});

test("a collector of traces that does not answer is told once, with the time of day and the date", async () => {
  const yaml = `module: ${servicesModule}\nlisten: { port: 0 }\nstore: "memory:"\ntracing: { endpoint: "http://user:planted-secret@127.0.0.1:1/v1/traces" }\n`;
  const broker = start(["serve"], { cwd: folderWith({ "osbert.yaml": yaml }), env: { OSBERT_CREDENTIALS: "a:b" } });
  const url = await answersAt(broker);
  expect((await ask(url, "GET", "/v2/catalog", { credential: "a:b" })).status).toBe(200);
  await broker.says(
    /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ warn {2}traces cannot be sent.*127\.0\.0\.1:1\/v1\/traces.*ECONNREFUSED/,
  );
  expect(broker.stderr()).not.toContain("planted-secret");
});

test.each([
  ["data: /proc/nowhere/data", /the folder \/proc\/nowhere\/data cannot be made/],
  ["data: osbert.yaml/data", /the folder .*osbert\.yaml\/data cannot be made \(ENOTDIR\)/],
  ["store: sqlite:/proc/nowhere/data/broker.db", /the folder \/proc\/nowhere\/data for the store cannot be made/],
])("a folder that cannot be made is told, not tried for ever: %s", async (setting, words) => {
  const cwd = folderWith({ "osbert.yaml": `module: ${servicesModule}\nlisten: { port: 0 }\n${setting}\n` });
  const { status, stderr } = await run(["serve"], { cwd });
  expect(status).not.toBe(0);
  expect(stderr).toMatch(words);
});

test("what the journal forgets is kept in a file before: who did what, when and why, and no secret", async () => {
  const yaml = `module: ${servicesModule}
listen: { port: 0 }
store: sqlite:broker.db
data: .
retention: { succeeded: 1s }
audit: { file: audit.jsonl }
`;
  const cwd = folderWith({ "osbert.yaml": yaml, "audit.jsonl": '{"cut":"sho' });
  const broker = start(["serve"], { cwd, env: { OSBERT_CREDENTIALS: `platform:${planted.platform}` } });
  const url = await answersAt(broker);
  const credential = `platform:${planted.platform}`;
  expect((await ask(url, "PUT", "/v2/service_instances/one", { body, credential })).status).toBe(201);
  const text = () => readFileSync(join(cwd, "audit.jsonl"), "utf8");
  await vi.waitFor(() => expect(text()).toContain('"settled"'), { timeout: 30_000 });
  const [cut, ...lines] = text().trimEnd().split("\n");
  expect(cut).toBe('{"cut":"sho');
  const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(entries[0]).toMatchObject({
    platform: "",
    instance: "one",
    seq: 1,
    kind: "accepted",
    actor: { subject: "platform" },
    details: { kind: "provision" },
  });
  expect(entries.find(({ kind }) => kind === "settled")).toMatchObject({
    details: { outcome: "succeeded", result: "***" },
  });
  expect(text()).not.toContain(planted.context);
});

test("a place for the audit trail that cannot be written is told at the start", async () => {
  const yaml = `module: ${servicesModule}\nlisten: { port: 0 }\naudit: { file: nowhere/audit.jsonl }\n`;
  const { status, stderr } = await run(["serve"], { cwd: folderWith({ "osbert.yaml": yaml }) });
  expect(status).not.toBe(0);
  expect(stderr).toMatch(/audit\.file .*nowhere\/audit\.jsonl cannot be written \(ENOENT\)/);
});

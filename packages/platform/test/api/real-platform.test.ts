import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { platformLog } from "../../src/api/index.js";
import { openPlatform } from "../../src/index.js";
import { startMisbehaving } from "../../src/testing/index.js";
import { apiLab } from "./api-lab.js";

const secret = "password-of-the-broker";
const db = "/spaces/team/instances/db";

/** A real platform with a real broker behind its API. Every answer is compared with the document. */
async function realPlatform() {
  const credentials = { username: "platform", password: secret };
  const broker = await startMisbehaving({ credentials });
  onTestFinished(() => broker.stop());
  const logged: string[] = [];
  const line = (fields: object, message: string) => void logged.push(`${message} ${JSON.stringify(fields)}`);
  const log = platformLog({ debug: line, info: line, warn: line, error: line });
  const platform = await openPlatform({ store: memoryStore(), observe: log });
  await platform.start();
  onTestFinished(() => platform.stop());
  const lab = apiLab(platform, { observe: [log] });
  const body = { url: broker.url, authentication: { kind: "basic", ...credentials } };
  const registered = await lab.ask("PUT", "/brokers/b", { as: "root", body });
  expect(registered.body).toMatchObject({ health: { state: "ok" }, authentication: "basic" });
  expect(registered.text).not.toContain(secret);
  const idle = async (path = db) => {
    await expect.poll(async () => (await lab.ask("GET", path)).body.queue.length, { timeout: 30_000 }).toBe(0);
    return (await lab.ask("GET", path)).body;
  };
  return { ...lab, broker, logged, idle };
}

test("everything about an instance, over the API: made, changed, bound, locked, undone and deleted", async () => {
  const { ask, idle, broker, logged } = await realPlatform();
  const text = '{"offering":"misbehaving","plan":"good","parameters":{"big":9007199254740993}}';
  const dry = await ask("PUT", `${db}?dry_run=true`, { body: text });
  expect(dry.body).toMatchObject({ result: "dry-run", report: { ok: true }, desired: { plan: { name: "good" } } });
  expect((await ask("GET", db)).status).toBe(404);

  const key = { headers: { "idempotency-key": "k1" } };
  const made = await ask("PUT", db, { body: text, ...key });
  expect([made.status, made.body.result]).toEqual([202, "accepted"]);
  const repeated = await ask("PUT", db, { body: text, ...key });
  expect([repeated.status, repeated.body.result, repeated.body.operation]).toEqual([
    202,
    "repeated",
    made.body.operation,
  ]);
  expect((await ask("PUT", db, { body: { offering: "misbehaving", plan: "good" }, ...key })).body.code).toBe(
    "idempotency-conflict",
  );
  const ready = await idle();
  expect(ready).toMatchObject({ phase: "ready", created_by: "alice" });
  expect((await ask("GET", db)).text).toContain('"parameters":{"big":9007199254740993}');
  expect(broker.requests().some(({ body }) => body.includes("9007199254740993"))).toBe(true);

  const stale = await ask("PATCH", db, { body: { parameters: { a: 1 } }, headers: { "if-match": '"0"' } });
  expect([stale.status, stale.body.code]).toEqual([412, "stale"]);
  await ask("POST", `${db}/lock`, { body: { reason: "audit" } });
  const waits = await ask("PATCH", db, { body: { parameters: { a: 1 } } });
  const { operation } = waits.body;
  expect((await ask("GET", `${db}/queue`)).body.items).toMatchObject([{ operation, author: "alice" }]);
  expect((await ask("GET", `${db}/queue/${operation}`)).body.after.parameters).toMatchObject({ a: 1 });
  expect((await ask("GET", db)).body.desired.parameters).toMatchObject({ a: 1 });
  await ask("POST", `${db}/operations/${operation}/cancel`, { body: {} });
  await ask("POST", `${db}/unlock`, { body: {} });
  await idle();
  expect((await ask("PATCH", `${db}/policy`, { body: { on_failure: "halt" } })).body.policy.on_failure).toBe("halt");

  await ask("PUT", `${db}/bindings/app`, { body: {} });
  await idle();
  const credentials = await ask("GET", `${db}/bindings/app/credentials`);
  const { user, password } = credentials.body.credentials;
  expect(password).toMatch(/^password-of-/);
  const journal = await ask("GET", `${db}/journal?limit=500`);
  expect(journal.body.items.length).toBeGreaterThan(5);
  expect((await ask("DELETE", db)).body.code).toBe("has-bindings");
  expect((await ask("GET", "/spaces/team/instances")).body.items).toMatchObject([{ name: "db", bindings: 1 }]);
  expect((await ask("DELETE", "/brokers/b", { as: "root" })).body.code).toBe("has-instances");
  await ask("DELETE", `${db}?cascade=true`);
  expect(await idle()).toMatchObject({ phase: "gone" });
  expect(broker.state().instances).toEqual([]);

  // Neither the broker's password nor a binding's credentials are told by anything but the one read that is for them.
  const told = [journal.text, ...logged].join("\n");
  for (const hidden of [secret, user, password]) expect(told).not.toContain(hidden);
});

test("a refused delete leaves the instance as it was; freezes hold changes back", async () => {
  const { ask, idle, broker } = await realPlatform();
  await ask("PUT", db, { body: { offering: "misbehaving", plan: "good" } });
  await idle();
  broker.setRules([{ call: "deprovision", do: "400" }]);
  await ask("DELETE", db);
  expect(await idle()).toMatchObject({ last_delete: { by: "alice" }, applied: { plan: { name: "good" } } });
  expect(broker.state().instances).toHaveLength(1);
  const { body } = await ask("GET", "/offerings/misbehaving");
  expect(body.offering.plans.length).toBeGreaterThan(3);
  expect((await ask("GET", "/spaces/team/rotations")).body.items).toEqual([]);
  expect((await ask("GET", "/orphans", { as: "root" })).body.items).toEqual([]);
  expect((await ask("GET", "/campaigns", { as: "root" })).body.items).toEqual([]);
  const frozen = await ask("POST", "/freezes", {
    as: "root",
    body: { reason: "night", space: "team", effect: "reject" },
  });
  expect(frozen.status).toBe(201);
  expect((await ask("PATCH", db, { body: { parameters: { a: 2 } } })).status).toBeGreaterThanOrEqual(400);
  await ask("DELETE", `/freezes/${frozen.body.id}`, { as: "root" });
  expect((await ask("PATCH", db, { body: { parameters: { a: 2 } } })).status).toBe(202);
});

test("quotas and visibilities, over the API: what is not offered in a space is not in its marketplace", async () => {
  const { ask, idle } = await realPlatform();
  const root = { as: "root" };
  const [offered] = (await ask("GET", "/offerings?name=misbehaving")).body.items;
  const good = offered.plans.find(({ name }: { name: string }) => name === "good");
  const rule = { broker: "b", offering: offered.id, spaces: [] };
  await ask("PUT", "/visibilities/nobody", { ...root, body: rule });
  await ask("PUT", "/visibilities/good", { ...root, body: { ...rule, plan: good.id, spaces: ["team"] } });
  const [seen] = (await ask("GET", "/offerings?name=misbehaving&space=team")).body.items;
  expect(seen.plans).toEqual([good]);
  expect((await ask("GET", `/offerings/${offered.id}`)).body.offering.plans).toHaveLength(1);
  expect((await ask("GET", "/offerings?name=misbehaving&space=other", root)).body.items).toEqual([]);
  expect((await ask("GET", "/offerings?name=misbehaving", root)).body.items).toEqual([offered]);
  expect((await ask("GET", "/offerings?space=other")).status).toBe(404);

  await ask("PUT", "/quotas/one", { ...root, body: { limit: 1, space: "team", broker: "b" } });
  await ask("PUT", db, { body: { offering: "misbehaving", plan: "good" } });
  await idle();
  const more = await ask("PUT", "/spaces/team/instances/more", { body: { offering: "misbehaving", plan: "good" } });
  expect([more.status, more.body.details.report.findings[0].rule]).toEqual([422, "quota"]);
  expect((await ask("GET", "/spaces/team/quotas")).body.items).toMatchObject([{ name: "one", limit: 1, used: 1 }]);
});

import { expect, test } from "vitest";
import { catalogOf, catalogServer } from "./catalog-server.js";
import { anna, olga, platformInTime } from "./platform-in-time.js";

const ref = { space: "space", name: "orders" };

test("E10-56: a create waits for a broker that is down, and is made when it comes back", async () => {
  const server = await catalogServer();
  const { platform, passUntil, read } = await platformInTime(server);
  await server.goDown();
  await platform.instances.create(ref, { offering: "postgres", plan: "small" }, anna);
  await passUntil(1_000, async () => (await platform.brokers.read("acme"))?.waiting === true);
  expect(await read(ref)).toMatchObject({ failures: [], queue: [{ op: "create" }] });
  expect((await platform.brokers.read("acme"))?.health).toMatchObject({ state: "failing" });
  const dry = await platform.instances.create(
    { ...ref, name: "other" },
    { offering: "postgres", plan: "small" },
    { ...anna, dryRun: true },
  );
  expect(dry).toMatchObject({
    kind: "dry run",
    report: { ok: true, findings: [{ severity: "warning", rule: "broker-unreachable" }] },
  });
  await server.comeUp();
  await passUntil(1_000, async () => (await read(ref)).phase === "ready");
  expect(server.seen.filter(({ method }) => method === "PUT")).toHaveLength(1);
  expect(await platform.brokers.read("acme")).toMatchObject({ waiting: false, health: { state: "ok" } });
});

test("E10-14: a create goes to the new address with the new credentials, if they are exchanged while it waits", async () => {
  const old = await catalogServer();
  const { platform, passUntil, read } = await platformInTime(old);
  old.authorization = "Bearer changed";
  await platform.instances.create(ref, { offering: "postgres", plan: "small" }, anna);
  await passUntil(1_000, async () => (await platform.brokers.read("acme"))?.health.state === "unauthorized");
  const moved = await catalogServer({ authorization: "Bearer new" });
  const authentication = { kind: "bearer", token: "new" } as const;
  await platform.brokers.change("acme", { url: moved.url, authentication }, olga);
  await passUntil(1_000, async () => (await read(ref)).phase === "ready");
  expect(moved.seen.filter(({ method }) => method === "PUT")).toHaveLength(1);
  const told = JSON.stringify([await platform.instances.journal(ref), await read(ref)]);
  expect(told).not.toContain("Bearer");
});

test("E10-54: what is frozen waits, is refused where the freeze says so, and goes on when it is lifted", async () => {
  const server = await catalogServer();
  const { platform, passUntil, read, clock } = await platformInTime(server);
  const { instances, freezes } = platform;
  const freeze = await freezes.freeze({ space: "space", reason: "not paid" }, olga);
  await instances.create(ref, { offering: "postgres", plan: "small" }, anna);
  await clock.advance(60_000);
  expect(await read(ref)).toMatchObject({ queue: [{ op: "create" }] });
  expect(server.seen.filter(({ method }) => method === "PUT")).toEqual([]);
  await instances.create({ ...ref, space: "another" }, { offering: "postgres", plan: "small" }, anna);
  await passUntil(100, async () => (await read({ ...ref, space: "another" })).phase === "ready");
  const strict = await freezes.freeze(
    { broker: "acme", reason: "incident", effect: "reject", deletesExempt: true },
    olga,
  );
  await expect(instances.update({ ...ref, space: "another" }, { parameters: '{"a":1}' }, anna)).rejects.toMatchObject({
    code: "preflight-failed",
  });
  await freezes.thaw(strict.id, olga);
  await freezes.thaw(freeze.id, olga);
  await passUntil(1_000, async () => (await read(ref)).phase === "ready");
});

test("E10-11: a plan that leaves while a create of it waits is told before anything is sent", async () => {
  const server = await catalogServer();
  const { platform, passUntil, read } = await platformInTime(server);
  const freeze = await platform.freezes.freeze({ reason: "a moment" }, olga);
  await platform.instances.create(ref, { offering: "postgres", plan: "large" }, anna);
  server.catalog = catalogOf({ postgres: ["small"] });
  await platform.brokers.relist("acme", olga);
  await platform.freezes.thaw(freeze.id, olga);
  await passUntil(1_000, async () => (await read(ref)).queue.length === 0);
  expect(await read(ref)).toMatchObject({ phase: "failed", failures: [{ class: "preflight-drift" }] });
  expect(server.seen.filter(({ method }) => method === "PUT")).toEqual([]);
});

test("E10-13: instances of a broker that was removed by force keep all that is known of them, and are adopted", async () => {
  const server = await catalogServer();
  const { platform, passUntil, read, create } = await platformInTime(server);
  await create("orders", "small");
  const before = await read(ref);
  server.changes = "hangs";
  await platform.instances.update(ref, { parameters: '{"a":1}' }, anna);
  await platform.instances.update(ref, { parameters: '{"b":1}' }, anna);
  await expect(platform.brokers.remove("acme", {}, olga)).rejects.toMatchObject({
    code: "has-instances",
    details: { instances: ["space/orders"] },
  });
  const removed = platform.brokers.remove("acme", { force: true }, olga);
  await passUntil(1_000, async () => (await platform.brokers.read("acme")) === undefined);
  await removed;
  await passUntil(1_000, async () => (await read(ref)).queue.length === 0);
  expect(await read(ref)).toMatchObject({ phase: "unmanaged", osbId: before.osbId, applied: before.applied });
  await expect(platform.instances.update(ref, { parameters: "{}" }, anna)).rejects.toThrow();
  server.changes = "answers";
  await platform.brokers.register("acme", { url: server.url, authentication: { kind: "none" } }, olga);
  const wanted = { offering: "postgres", plan: "small", osbId: before.osbId ?? "" };
  await platform.instances.adopt(ref, wanted, anna);
  await passUntil(100, async () => (await read(ref)).phase === "ready");
  expect((await read(ref)).osbId).toBe(before.osbId);
});

test("E10-13: a bind and an unbind that were under way when their broker was removed by force are not forgotten", async () => {
  const server = await catalogServer();
  const { platform, passUntil, read, create, phases } = await platformInTime(server);
  await create("orders", "small");
  const { osbId } = await read(ref);
  await platform.instances.bind(ref, { name: "old" }, anna);
  await passUntil(10, async () => (await read(ref)).bindings[0]?.phase === "bound");
  server.changes = "hangs";
  const isAsked = (method: string, times: number) => () =>
    server.seen.filter((one) => one.method === method && one.path.includes("service_bindings")).length === times;
  await platform.instances.bind(ref, { name: "app" }, anna);
  await passUntil(10, isAsked("PUT", 2));
  await platform.instances.unbind(ref, "old", anna);
  await passUntil(10, isAsked("DELETE", 1));
  const removed = platform.brokers.remove("acme", { force: true }, olga);
  await passUntil(1_000, async () => (await platform.brokers.read("acme")) === undefined);
  await removed;
  await passUntil(1_000, async () => (await read(ref)).queue.length === 0);
  expect(await phases(ref)).toEqual({ app: "binding", old: "unbind-rejected" });
  server.changes = "answers";
  await platform.brokers.register("acme", { url: server.url, authentication: { kind: "none" } }, olga);
  await platform.instances.adopt(ref, { offering: "postgres", plan: "small", osbId: osbId ?? "" }, anna);
  await passUntil(100, async () => (await read(ref)).phase === "ready");
  // Nobody knows whether there are two bindings: both can be unbound, and the instance is not deleted without them.
  await platform.instances.delete(ref, { cascade: true }, anna);
  await passUntil(100, async () => (await read(ref)).phase === "gone");
  expect(isAsked("DELETE", 3)()).toBe(true);
});

test("E10-12: an instance whose plan leaves the catalog while it is made is made, polled and deleted with the ids that are kept", async () => {
  const server = await catalogServer();
  const { platform, passUntil, read } = await platformInTime(server);
  let state = "in progress";
  server.reply = ({ method, path }) => {
    if (path.endsWith("/last_operation")) return { status: 200, body: { state } };
    return method === "PUT" ? { status: 202, body: { operation: "one" } } : undefined;
  };
  await platform.instances.create(ref, { offering: "postgres", plan: "large" }, anna);
  await passUntil(100, () => server.seen.some(({ path }) => path.endsWith("/last_operation")));
  server.catalog = catalogOf({ redis: ["tiny"] });
  await platform.brokers.relist("acme", olga);
  state = "succeeded";
  await passUntil(1_000, async () => (await read(ref)).phase === "ready");
  await platform.instances.delete(ref, {}, anna);
  await passUntil(1_000, async () => (await read(ref)).phase === "gone");
  const [deleted] = server.seen.filter(({ method }) => method === "DELETE");
  expect(deleted?.query).toMatchObject({ service_id: "postgres-id", plan_id: "postgres-large-id" });
});

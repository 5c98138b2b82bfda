import { expect, test } from "vitest";
import { catalogServer } from "./catalog-server.js";
import { anna, olga, platformInTime } from "./platform-in-time.js";

const given = { mode: "abandon", reason: "the broker is no more" } as const;

test("E10-29: to abandon waits for nothing: not for an unbind at a broker that is down; all that may be there is in the ledger", async () => {
  const server = await catalogServer();
  const { platform, passUntil, read, create } = await platformInTime(server);
  const { instances } = platform;
  const ref = await create("orders", "small");
  for (const name of ["app", "job"]) await instances.bind(ref, { name }, anna);
  await passUntil(10, async () => (await read(ref)).queue.length === 0);
  const { osbId, bindings } = await read(ref);
  await server.goDown();
  await instances.unbind(ref, "app", anna);
  await passUntil(1_000, async () => (await platform.brokers.read("acme"))?.waiting === true);
  await instances.update(ref, { parameters: '{"a":1}' }, anna);
  await instances.bind(ref, { name: "never" }, anna);
  await instances.delete(ref, given, anna);
  await passUntil(10, async () => (await read(ref)).phase === "abandoned");
  expect((await read(ref)).queue).toEqual([]);
  const rows = (await platform.orphans.list({ broker: "acme" })).items;
  expect(
    rows.map(({ instanceOsbId, bindingOsbId, state, reason }) => [instanceOsbId, bindingOsbId, state, reason]),
  ).toEqual(
    expect.arrayContaining([
      [osbId, null, "abandoned", given.reason],
      ...bindings.map((binding) => [osbId, binding.osbId, "abandoned", given.reason]),
    ]),
  );
  expect(rows).toHaveLength(3);
});

test("E10-29: a bind whose answer never came is in the ledger of what was abandoned", async () => {
  const server = await catalogServer();
  const { platform, passUntil, read, create } = await platformInTime(server);
  const ref = await create("orders", "small");
  server.changes = "hangs";
  await platform.instances.bind(ref, { name: "app" }, anna);
  await passUntil(10, () => server.seen.some(({ path }) => path.includes("service_bindings")));
  const [binding] = (await read(ref)).bindings;
  await platform.instances.delete(ref, given, anna);
  await passUntil(10, async () => (await read(ref)).phase === "abandoned");
  const rows = (await platform.orphans.list({ broker: "acme" })).items;
  expect(rows.map(({ bindingOsbId }) => bindingOsbId)).toEqual(expect.arrayContaining([null, binding?.osbId]));
});

test("E10-13: an instance whose broker was removed is abandoned, with a row in the ledger, and deleted in no other way", async () => {
  const server = await catalogServer();
  const { platform, passUntil, read, create } = await platformInTime(server);
  const ref = await create("orders", "small");
  const { osbId } = await read(ref);
  const removed = platform.brokers.remove("acme", { force: true }, olga);
  await passUntil(1_000, async () => (await platform.brokers.read("acme")) === undefined);
  await removed;
  await expect(platform.instances.delete(ref, {}, anna)).rejects.toMatchObject({
    code: "preflight-failed",
    message: expect.stringMatching(/abandon the instance, or adopt it/),
  });
  await platform.instances.delete(ref, given, anna);
  await passUntil(10, async () => (await read(ref)).phase === "abandoned");
  expect((await platform.orphans.list({ broker: "acme" })).items).toMatchObject([
    { instanceOsbId: osbId, bindingOsbId: null, state: "abandoned" },
  ]);
});

test("E10-13: an adoption that the new broker does not know of leaves the instance unmanaged", async () => {
  const server = await catalogServer();
  const { platform, passUntil, read, create } = await platformInTime(server);
  const ref = await create("orders", "small");
  const { osbId } = await read(ref);
  const removed = platform.brokers.remove("acme", { force: true }, olga);
  await passUntil(1_000, async () => (await platform.brokers.read("acme")) === undefined);
  await removed;
  await platform.brokers.register("other", { url: server.url, authentication: { kind: "none" } }, olga);
  server.reply = () => ({ status: 404, body: {} });
  const wanted = { broker: "other", offering: "postgres", plan: "small", osbId: osbId ?? "" };
  await platform.instances.adopt(ref, wanted, anna);
  expect((await read(ref)).phase).toBe("unmanaged");
  await passUntil(1_000, async () => (await read(ref)).queue.length === 0);
  expect(await read(ref)).toMatchObject({ phase: "unmanaged", osbId, failures: [{ op: "adopt" }] });
  server.reply = ({ path }) =>
    path.endsWith("/last_operation") ? { status: 200, body: { state: "succeeded" } } : undefined;
  await platform.instances.adopt(ref, wanted, anna);
  await passUntil(1_000, async () => (await read(ref)).phase === "ready");
  expect(await read(ref)).toMatchObject({ broker: "other", osbId, failures: [] });
});

test("E10-13: what was sent to a broker before it was removed is kept: a bind without an answer, and not one that never went out", async () => {
  const server = await catalogServer();
  const { platform, passUntil, read, create } = await platformInTime(server);
  const ref = await create("orders", "small");
  server.changes = "hangs";
  await platform.instances.bind(ref, { name: "app" }, anna);
  await passUntil(10, () => server.seen.some(({ path }) => path.includes("service_bindings")));
  await platform.instances.update(ref, { parameters: '{"a":1}' }, anna);
  await platform.instances.bind(ref, { name: "never" }, anna);
  const [sent] = (await read(ref)).bindings;
  const removed = platform.brokers.remove("acme", { force: true }, olga);
  await passUntil(1_000, async () => (await platform.brokers.read("acme")) === undefined);
  await removed;
  await passUntil(1_000, async () => (await read(ref)).queue.length === 0);
  expect(await read(ref)).toMatchObject({ phase: "unmanaged", bindings: [{ name: "app", osbId: sent?.osbId }] });
});

test("E10-23: a create that the broker is at when it refuses the delete is followed to its end", async () => {
  const server = await catalogServer();
  const { platform, passUntil, read } = await platformInTime(server);
  const ref = { space: "space", name: "orders" };
  let state = "in progress";
  server.reply = ({ method, path }) => {
    if (path.endsWith("/last_operation")) return { status: 200, body: { state } };
    if (method === "DELETE") return { status: 400, body: { description: "protected" } };
    return method === "PUT" ? { status: 202, body: { operation: "one" } } : undefined;
  };
  await platform.instances.create(ref, { offering: "postgres", plan: "small" }, anna);
  await passUntil(100, () => server.seen.some(({ path }) => path.endsWith("/last_operation")));
  await platform.instances.update(ref, { parameters: '{"a":1}' }, anna);
  await platform.instances.delete(ref, {}, olga);
  await passUntil(100, async () => (await read(ref)).lastDelete !== null);
  expect(await read(ref)).toMatchObject({
    phase: "creating",
    lastDelete: { by: "olga", message: "protected", how: "rejected" },
    queue: [{ op: "create", author: "anna" }, { op: "update" }],
  });
  state = "succeeded";
  await passUntil(1_000, async () => (await read(ref)).queue.length === 0);
  expect(await read(ref)).toMatchObject({ phase: "ready", applied: { parameters: '{"a":1}' } });
  const puts = server.seen.filter(({ method }) => method === "PUT");
  expect(new Set(puts.map(({ path }) => path)).size).toBe(1);
});

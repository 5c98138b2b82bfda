import { expect, test } from "vitest";
import type { Admitted } from "../src/index.js";
import { catalogOf, catalogServer } from "./catalog-server.js";
import { anna, olga, platformInTime } from "./platform-in-time.js";
import { operationOf } from "./queue-stories.js";

function maintained(version: string) {
  const catalog = catalogOf({ postgres: ["small"] });
  for (const plan of (catalog.services[0] as { plans: object[] }).plans)
    Object.assign(plan, { maintenance_info: { version } });
  return catalog;
}

/** An instance of version 1.0.0, whose plan is known to have 2.0.0, and has 3.0.0 at its broker. */
async function outrun() {
  const server = await catalogServer({ catalog: maintained("1.0.0") });
  const lab = await platformInTime(server);
  const ref = await lab.create("orders", "small");
  server.catalog = maintained("2.0.0");
  await lab.platform.brokers.relist("acme", olga);
  server.catalog = maintained("3.0.0");
  const patches = () => server.seen.filter(({ method }) => method === "PATCH");
  const conflict = { status: 422, body: { error: "MaintenanceInfoConflict", description: "it is 3.0.0 by now" } };
  server.reply = ({ method }) => (method === "PATCH" && patches().length === 1 ? conflict : undefined);
  const ended = async (asked: Promise<Admitted>) => {
    const operation = operationOf(await asked);
    const see = () => lab.platform.instances.operation(ref, operation);
    await lab.passUntil(100, async () => (await see())?.state !== "open");
    return see();
  };
  return { server, lab, ref, patches, ended, instances: lab.platform.instances };
}

test("E10-52: who asked for the latest version gets it, also if the catalog has moved on", async () => {
  const { lab, ref, patches, ended, instances } = await outrun();
  expect(await ended(instances.upgrade(ref, undefined, anna))).toMatchObject({ state: "succeeded" });
  expect(patches()).toHaveLength(2);
  expect((await lab.read(ref)).applied?.maintenance).toBe("3.0.0");
});

test("E10-52: who asked for a version is told that it is another by now, and nothing else is sent", async () => {
  const { lab, ref, patches, ended, instances } = await outrun();
  expect(await ended(instances.upgrade(ref, "2.0.0", anna))).toMatchObject({ state: "failed" });
  expect(patches()).toHaveLength(1);
  expect((await lab.read(ref)).applied?.maintenance).toBe("1.0.0");
});

test("E10-52: a broker that refuses the version of its own catalog is asked no more often than that", async () => {
  const { server, ref, patches, ended, instances } = await outrun();
  const conflict = { status: 422, body: { error: "MaintenanceInfoConflict", description: "no" } };
  server.reply = ({ method }) => (method === "PATCH" ? conflict : undefined);
  expect(await ended(instances.upgrade(ref, undefined, anna))).toMatchObject({ state: "failed" });
  expect(patches()).toHaveLength(2);
});

test("E10-33, E10-52: the retry of an upgrade to the latest version is one to the latest of then", async () => {
  const { server, lab, ref, ended, instances } = await outrun();
  server.reply = ({ method }) =>
    method === "PATCH" ? { status: 400, body: { description: "out of disk" } } : undefined;
  const failed = operationOf(await instances.upgrade(ref, undefined, anna));
  await lab.passUntil(100, async () => (await instances.operation(ref, failed))?.state === "failed");
  server.reply = undefined;
  await lab.platform.brokers.relist("acme", olga);
  expect(await ended(instances.retry(ref, failed, anna))).toMatchObject({ state: "succeeded" });
  expect((await lab.read(ref)).applied?.maintenance).toBe("3.0.0");
});

test("E10-53: a campaign that was killed asks for the same upgrade again, although the version is another by now", async () => {
  const { lab, ref, instances } = await outrun();
  await instances.lock(ref, { reason: "audit" }, olga);
  const asks = { ...olga, idempotencyKey: "campaign.c.0" };
  const first = operationOf(await instances.upgrade(ref, undefined, asks));
  await lab.platform.brokers.relist("acme", olga);
  expect(await instances.upgrade(ref, undefined, asks)).toMatchObject({ kind: "repeated", operation: first });
});

test("E4: a create whose version is not that of the broker any more is sent with the one of now", async () => {
  const server = await catalogServer({ catalog: maintained("1.0.0") });
  const lab = await platformInTime(server);
  server.catalog = maintained("2.0.0");
  const puts = () => server.seen.filter(({ method }) => method === "PUT");
  const conflict = { status: 422, body: { error: "MaintenanceInfoConflict", description: "it is 2.0.0 by now" } };
  server.reply = ({ method }) => (method === "PUT" && puts().length === 1 ? conflict : undefined);
  const ref = await lab.create("orders", "small");
  expect(puts()).toHaveLength(2);
  expect((await lab.read(ref)).applied?.maintenance).toBe("2.0.0");
});

test("an upgrade without a version that is asked for again finds the first one, also when the instance, or the version in the catalog, is gone", async () => {
  const { lab, ref, server, instances, ended } = await outrun();
  const upgrade = () => instances.upgrade(ref, undefined, { ...anna, idempotencyKey: "k" });
  const first = await upgrade();
  await ended(Promise.resolve(first));
  server.catalog = catalogOf({ postgres: ["small"] });
  await lab.platform.brokers.relist("acme", olga);
  expect(await upgrade()).toMatchObject({ kind: "repeated", operation: operationOf(first) });
  await expect(instances.upgrade(ref, undefined, anna)).rejects.toMatchObject({ code: "invalid" });
  await ended(instances.delete(ref, {}, anna));
  expect(await upgrade()).toMatchObject({ kind: "repeated", operation: operationOf(first) });
  await expect(instances.upgrade(ref, undefined, anna)).rejects.toMatchObject({ code: "not-found" });
});

import { memoryStore } from "@osbert/journal/memory";
import { manualClock } from "@osbert/journal/testing";
import { expect, onTestFinished, test } from "vitest";
import { openPlatform } from "../src/index.js";
import type { JournalQuotas } from "../src/queue/quotas.js";
import { keys } from "../src/records/keys.js";
import { catalogServer } from "./catalog-server.js";
import { anna, olga, platformInTime } from "./platform-in-time.js";

const small = { offering: "postgres", plan: "small" } as const;
const ref = (name: string, space = "space") => ({ space, name });
const full = { code: "preflight-failed", message: expect.stringContaining("the quota few allows") };

async function lab() {
  const server = await catalogServer();
  const made = await platformInTime(server);
  const { platform, passUntil, read } = made;
  const settled = (name: string, phase: string) => passUntil(100, async () => (await read(ref(name))).phase === phase);
  const used = async (space = "space") =>
    Object.fromEntries((await platform.quotas.usage(space)).map(({ name, used: count }) => [name, count]));
  return { ...made, server, settled, used, instances: platform.instances, quotas: platform.quotas };
}

test("E10-49: a quota is reserved when an instance is accepted, and released when its create fails, is called off, or it is gone", async () => {
  const { instances, quotas, server, settled, used, platform, passUntil, read } = await lab();
  await quotas.set("few", { limit: 1, space: "space" }, olga);
  server.reply = () => ({ status: 400, body: { description: "no" } });
  await instances.create(ref("a"), small, anna);
  await expect(instances.create(ref("b"), small, anna)).rejects.toMatchObject(full);
  await settled("a", "failed");
  expect(await used()).toEqual({ few: 0 });
  server.reply = undefined;
  const freeze = await platform.freezes.freeze({ reason: "a moment", deletesExempt: true }, olga);
  const waiting = await instances.create(ref("b"), small, anna);
  expect(await used()).toEqual({ few: 1 });
  await expect(instances.update(ref("a"), { parameters: "{}" }, anna)).rejects.toMatchObject(full);
  await instances.cancel(ref("b"), waiting.kind === "accepted" ? waiting.operation : "", anna);
  expect(await used()).toEqual({ few: 0 });
  await platform.freezes.thaw(freeze.id, olga);
  await instances.update(ref("a"), { parameters: "{}" }, anna);
  await settled("a", "ready");
  await expect(instances.create(ref("c"), small, anna)).rejects.toMatchObject(full);
  await instances.create(ref("c", "another"), small, anna);
  await instances.delete(ref("a"), {}, anna);
  await settled("a", "gone");
  await instances.create(ref("c"), small, anna);
  await settled("c", "ready");
  await passUntil(10, async () => (await read(ref("c", "another"))).phase === "ready");
});

test("E10-49: of many who ask at once as many are accepted as there is room for", async () => {
  const { instances, quotas, used } = await lab();
  await quotas.set("few", { limit: 3 }, olga);
  const names = Array.from({ length: 12 }, (_, number) => `i${number}`);
  const asked = await Promise.allSettled(names.map((name) => instances.create(ref(name), small, anna)));
  const accepted = asked.filter(({ status }) => status === "fulfilled");
  expect(accepted.length).toBeLessThanOrEqual(3);
  expect(await used()).toEqual({ few: accepted.length });
  for (const name of names) await instances.create(ref(name), small, anna).catch(() => undefined);
  expect(await used()).toEqual({ few: 3 });
});

test("E10-49: two who have both reserved before either was accepted do not both get the last place", async () => {
  const { quotas } = await lab();
  await quotas.set("few", { limit: 1 }, olga);
  const reserve = (name: string, more = {}) => {
    const what = { broker: "acme", offering: "postgres-id", plan: "postgres-small-id" };
    return (quotas as JournalQuotas).reserve(ref(name), what, { ...anna, ...more });
  };
  const first = await reserve("a");
  expect(first.findings).toEqual([]);
  const second = await reserve("b");
  expect(second.findings).toMatchObject([{ rule: "quota" }]);
  expect((await reserve("c", { dryRun: true })).findings).toMatchObject([{ rule: "quota" }]);
  await second.release();
  await first.release();
  expect((await reserve("c", { dryRun: true })).findings).toEqual([]);
  expect((await reserve("b")).findings).toEqual([]);
});

test("E10-50: a quota that is lowered leaves what is there, and refuses what would take more of it", async () => {
  const { instances, quotas, settled, used, platform, server, create } = await lab();
  server.catalog = {
    services: [
      {
        ...{ id: "postgres-id", name: "postgres", description: "d", bindable: true, plan_updateable: true },
        plans: ["small", "large"].map((name) => ({ id: `postgres-${name}-id`, name, description: name })),
      },
    ],
  };
  await platform.brokers.relist("acme", olga);
  await create("a", "large");
  await create("b", "large");
  await create("c", "small");
  await quotas.set("few", { limit: 1, plan: "postgres-large-id", broker: "acme" }, olga);
  await quotas.set("all", { limit: 3 }, olga);
  expect(await used()).toEqual({ all: 3, few: 2 });
  await instances.update(ref("a"), { parameters: '{"x":1}' }, anna);
  await instances.update(ref("c"), { parameters: '{"x":1}' }, anna);
  await expect(instances.update(ref("c"), { plan: "large" }, anna)).rejects.toMatchObject(full);
  expect(await instances.update(ref("c"), { plan: "large" }, { ...anna, dryRun: true })).toMatchObject({
    report: { ok: false, findings: [{ rule: "quota" }] },
  });
  await settled("a", "ready");
  await instances.update(ref("a"), { plan: "small" }, anna);
  await settled("a", "ready");
  await expect(instances.update(ref("c"), { plan: "large" }, anna)).rejects.toMatchObject(full);
  await quotas.remove("few", olga);
  await instances.update(ref("c"), { plan: "large" }, anna);
});

test("whoever is killed between the reservation and the create keeps the place for minutes, and not for ever", async () => {
  const { instances, quotas, platform, clock } = await lab();
  await quotas.set("few", { limit: 1 }, olga);
  const left = { id: "left", instance: "never", broker: "acme", offering: "postgres-id", plan: "postgres-small-id" };
  const reserve = () => ({
    result: null,
    change: { data: { reservations: [{ ...left, at: platform.journal.now() }] } },
  });
  await platform.journal.transact(keys.reservations("space"), reserve, anna);
  await expect(instances.create(ref("a"), small, anna)).rejects.toMatchObject(full);
  await clock.advance(6 * 60_000);
  expect((await instances.create(ref("a"), small, anna)).kind).toBe("accepted");
  const { data } = (await platform.journal.read(keys.reservations("space"))) ?? {};
  expect(data).toEqual({ reservations: [] });
});

test("quotas and visibilities are kept, are the same in the next process, and what cannot be one is refused", async () => {
  const store = memoryStore();
  const clock = manualClock();
  const open = async () => {
    const platform = await openPlatform({ store, clock });
    onTestFinished(() => platform.journal.kill());
    return platform;
  };
  const first = await open();
  await first.quotas.set("few", { limit: 1 }, olga);
  await first.quotas.set("few", { limit: 2, space: "s" }, olga);
  await first.visibilities.set("v", { broker: "acme", offering: "o", spaces: ["s"] }, olga);
  for (const limit of [-1, 1.5, Number.NaN, 1e9])
    await expect(first.quotas.set("few", { limit }, olga)).rejects.toMatchObject({ code: "invalid" });
  await expect(first.quotas.set("a/b", { limit: 1 }, olga)).rejects.toMatchObject({ code: "invalid" });
  const odd = { limit: 1, counts: "plans" } as never;
  await expect(first.quotas.set("few", odd, olga)).rejects.toMatchObject({ code: "invalid" });
  await expect(first.quotas.remove("other", olga)).rejects.toMatchObject({ code: "not-found" });
  await expect(
    first.visibilities.set("v", { broker: "acme", offering: "o", spaces: ["../x"] }, olga),
  ).rejects.toMatchObject({ code: "invalid" });
  await first.journal.kill();
  const next = await open();
  expect(next.quotas.list()).toMatchObject([{ name: "few", counts: "instances", limit: 2, space: "s", by: "olga" }]);
  expect(next.visibilities.list()).toMatchObject([{ name: "v", plan: null, spaces: ["s"] }]);
});

test("E6: a plan that is not offered in a space is refused there, and what has it already goes on", async () => {
  const { platform, instances, create, settled } = await lab();
  await create("a", "large");
  const rule = { broker: "acme", offering: "postgres-id", plan: "postgres-large-id", spaces: ["vip"] };
  await platform.visibilities.set("large-for-vips", rule, olga);
  await expect(instances.create(ref("b"), { ...small, plan: "large" }, anna)).rejects.toMatchObject({
    code: "preflight-failed",
    details: { report: { findings: [{ rule: "plan-not-visible", path: "/plan" }] } },
  });
  expect((await instances.create(ref("b", "vip"), { ...small, plan: "large" }, anna)).kind).toBe("accepted");
  await instances.update(ref("a"), { parameters: '{"x":1}' }, anna);
  await instances.delete(ref("a"), {}, anna);
  await settled("a", "gone");
});

test("E10-49: a create that a delete has stopped counts until the broker agrees with the delete", async () => {
  const { instances, quotas, server, passUntil, read, used } = await lab();
  await quotas.set("few", { limit: 1 }, olga);
  let isAnswered = false;
  server.reply = ({ method, path }) => {
    if (path.endsWith("/last_operation")) return { status: 200, body: { state: "in progress" } };
    if (method === "DELETE")
      return isAnswered ? { status: 200, body: {} } : { status: 422, body: { error: "ConcurrencyError" } };
    return method === "PUT" ? { status: 202, body: {} } : undefined;
  };
  await instances.create(ref("a"), small, anna);
  await passUntil(100, () => server.seen.some(({ path }) => path.endsWith("/last_operation")));
  await instances.delete(ref("a"), {}, anna);
  await passUntil(100, () => server.seen.some(({ method }) => method === "DELETE"));
  expect(await used()).toEqual({ few: 1 });
  await expect(instances.create(ref("b"), small, anna)).rejects.toMatchObject(full);
  isAnswered = true;
  await passUntil(1_000, async () => (await read(ref("a"))).phase === "gone");
  expect(await used()).toEqual({ few: 0 });
});

const fullOfBindings = {
  code: "preflight-failed",
  message: expect.stringContaining("the quota few allows 2 bindings"),
};

test("E10-49: bindings of a space are limited, too: a place is taken when a bind is accepted, and is free when it fails, is called off or unbound", async () => {
  const { instances, quotas, server, used, create, phases, passUntil } = await lab();
  await quotas.set("few", { limit: 2, counts: "bindings" }, olga);
  await create("a", "small");
  await create("b", "large");
  await instances.bind(ref("a"), { name: "one" }, anna);
  const keyed = { ...anna, idempotencyKey: "k" };
  await instances.bind(ref("b"), { name: "two" }, keyed);
  expect(await used()).toEqual({ few: 2 });
  await expect(instances.bind(ref("b"), { name: "three" }, anna)).rejects.toMatchObject(fullOfBindings);
  expect(await instances.bind(ref("b"), { name: "three" }, { ...anna, dryRun: true })).toMatchObject({
    report: { ok: false, findings: [{ rule: "quota" }] },
  });
  expect(await instances.bind(ref("b"), { name: "two" }, keyed)).toMatchObject({ kind: "repeated" });
  // Instances do not count for it, and another space has its own.
  await create("c", "small");
  await instances.create(ref("d", "another"), small, anna);
  await passUntil(10, async () => (await instances.read(ref("d", "another")))?.phase === "ready");
  await instances.bind(ref("d", "another"), { name: "one" }, anna);
  await passUntil(100, async () => (await phases(ref("a"))).one === "bound");
  await instances.unbind(ref("a"), "one", anna);
  await passUntil(100, async () => (await phases(ref("a"))).one === undefined);
  expect(await used()).toEqual({ few: 1 });
  server.reply = ({ path }) => (path.includes("service_bindings") ? { status: 400, body: {} } : undefined);
  await instances.bind(ref("a"), { name: "one" }, anna);
  await passUntil(100, async () => (await phases(ref("a"))).one === "failed");
  expect(await used()).toEqual({ few: 1 });
  await instances.delete(ref("b"), { mode: "abandon", reason: "unused" }, olga);
  await passUntil(100, async () => (await instances.read(ref("b")))?.phase === "abandoned");
  expect(await used()).toEqual({ few: 0 });
});

test("a quota of bindings counts those of one plan, and lets a binding be rotated although it is full", async () => {
  const { instances, quotas, used, create, platform, server, passUntil, phases } = await lab();
  server.catalog = {
    services: [
      {
        ...{ id: "postgres-id", name: "postgres", description: "d", bindable: true },
        plans: ["small", "large"].map((name) => ({
          ...{ id: `postgres-${name}-id`, name, description: name, binding_rotatable: true },
        })),
      },
    ],
  };
  await platform.brokers.relist("acme", olga);
  await create("a", "small");
  await create("b", "large");
  await quotas.set("few", { limit: 1, counts: "bindings", broker: "acme", plan: "postgres-large-id" }, olga);
  for (const name of ["one", "two"]) await instances.bind(ref("a"), { name }, anna);
  await instances.bind(ref("b"), { name: "one" }, anna);
  await passUntil(100, async () => (await phases(ref("b"))).one === "bound");
  await expect(instances.bind(ref("b"), { name: "two" }, anna)).rejects.toMatchObject({ code: "preflight-failed" });
  // Both count until the old one is unbound.
  await instances.rotate(ref("b"), "one", undefined, anna);
  expect(await used()).toEqual({ few: 2 });
});

test("E10-49: of 64 binds at once as many are accepted as there is room for", async () => {
  const { instances, quotas, used, create } = await lab();
  await quotas.set("few", { limit: 10, counts: "bindings" }, olga);
  for (const name of ["a", "b", "c", "d"]) await create(name, "small");
  const wanted = Array.from({ length: 64 }, (_, number) => [`${"abcd"[number % 4]}`, `b${number}`] as const);
  const bind = ([name, binding]: readonly [string, string]) => instances.bind(ref(name), { name: binding }, anna);
  const asked = await Promise.allSettled(wanted.map(bind));
  const accepted = asked.filter(({ status }) => status === "fulfilled").length;
  expect(accepted).toBeLessThanOrEqual(10);
  expect(await used()).toEqual({ few: accepted });
  for (const one of wanted) await bind(one).catch(() => undefined);
  expect(await used()).toEqual({ few: 10 });
});

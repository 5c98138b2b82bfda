import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test, vi } from "vitest";
import { openPlatform } from "../src/index.js";
import { JournalOrphans } from "../src/queue/orphans.js";
import { osbIdLabel, osbIdLabelName } from "../src/records/instance-labels.js";
import { keys } from "../src/records/keys.js";
import { catalogOf, catalogServer } from "./catalog-server.js";
import { type ExecutionLab, executionLab } from "./execution-lab.js";
import { anna, olga, platformInTime } from "./platform-in-time.js";

/** What is at a broker has one owner, and whoever owns it is not told to delete it by the ledger (E10-62). */
const key = keys.orphan("broker", "osb-old", null);
const deletes = (lab: ExecutionLab) => lab.sent().filter((line) => line.startsWith("DELETE"));

/** At the broker, and nobody's. */
async function withAbandoned(options: Parameters<typeof executionLab>[0] = {}) {
  const lab = await executionLab(options);
  await lab.ended("old", await lab.create("old"));
  await lab.ended("old", await lab.delete("old", { mode: "abandon" }));
  return { lab, orphans: new JournalOrphans(lab.journal) };
}

test("E10-62: what another instance has is not adopted, and deleting the second does not delete it", async () => {
  const lab = await executionLab();
  await lab.ended("old", await lab.create("old"));
  expect(await lab.ended("new", await lab.adopt("new", "osb-old"))).toMatchObject({ failure: { class: "rejected" } });
  expect(await lab.ended("new", await lab.delete("new"))).toMatchObject({
    kind: "succeeded",
    result: { asked: false },
  });
  expect(lab.broker.state().instances.map(({ id }) => id)).toEqual(["osb-old"]);
});

test("E10-62: of two that adopt the same at the same time, at most one has it", async () => {
  const { lab } = await withAbandoned();
  const asked = await Promise.all(
    ["one", "two"].map(async (name) => [name, await lab.adopt(name, "osb-old")] as const),
  );
  const ends = await Promise.all(asked.map(([name, operation]) => lab.ended(name, operation)));
  expect(ends.filter(({ kind }) => kind === "succeeded").length).toBeLessThanOrEqual(1);
  // Whoever asks again when that is over has it.
  const has = ends.some(({ kind }) => kind === "succeeded");
  const third = await lab.ended("three", await lab.adopt("three", "osb-old"));
  expect(third.kind).toBe(has ? "failed" : "succeeded");
});

test("E10-62: what the ledger deletes is not adopted", async () => {
  const { lab, orphans } = await withAbandoned({ rules: [{ call: "deprovision", do: "500" }] });
  await orphans.mitigate(key, olga);
  expect(await lab.ended("new", await lab.adopt("new", "osb-old"))).toMatchObject({
    failure: { class: "rejected" },
    error: { message: expect.stringContaining("ledger") },
  });
});

test("E10-62: what was adopted is not deleted by its row in the ledger, which ends", async () => {
  const { lab, orphans } = await withAbandoned();
  expect(await lab.ended("new", await lab.adopt("new", "osb-old"))).toMatchObject({ kind: "succeeded" });
  await orphans.mitigate(key, olga);
  await lab.quiet();
  expect(deletes(lab)).toEqual([]);
  expect(await lab.orphans()).toMatchObject([{ state: "dismissed", endReason: expect.stringContaining("adopted") }]);
  expect(await lab.ended("new", await lab.delete("new"))).toMatchObject({ kind: "succeeded", result: { asked: true } });
  expect(lab.broker.state().instances).toEqual([]);
});

test("E10-62: an adoption that was cancelled claims nothing any more, and its instance is still found by its broker", async () => {
  const { lab } = await withAbandoned();
  const find = (name: string, value: string) =>
    lab.journal
      .find({ label: { name, value }, prefix: keys.instances })
      .then(({ items }) => items.map((one) => one.key));
  const claims = () => find(osbIdLabelName, osbIdLabel("broker", "osb-old"));
  lab.broker.setRules([{ call: "fetch", do: "503" }]);
  const adopt = await lab.adopt("new", "osb-old");
  await vi.waitFor(() => expect(lab.sent()).toContain("GET osb-old"));
  expect(await claims()).toEqual([keys.instance("dev", "new")]);
  await lab.cancel("new", adopt);
  expect(await lab.ended("new", adopt)).toMatchObject({ kind: "cancelled" });
  expect(await claims()).toEqual([]);
  expect(await find("broker", "broker")).toEqual([keys.instance("dev", "new")]);
  expect((await lab.data("new"))?.adoptingId).toBeNull();
  lab.broker.setRules([]);
  expect(await lab.ended("next", await lab.adopt("next", "osb-old"))).toMatchObject({ kind: "succeeded" });
});

test("E10-62: an adoption that has not ended does not end the row in the ledger: if it fails, what nobody has is deleted", async () => {
  const { lab, orphans } = await withAbandoned();
  lab.broker.setRules([{ call: "fetch", do: "503" }]);
  const adopt = await lab.adopt("new", "osb-old");
  await vi.waitFor(() => expect(lab.sent()).toContain("GET osb-old"));
  await orphans.mitigate(key, olga);
  await vi.waitFor(async () =>
    expect((await lab.journal.operations(key)).items).toMatchObject([
      { description: expect.stringContaining("adopt") },
    ]),
  );
  expect(deletes(lab)).toEqual([]);
  await lab.cancel("new", adopt);
  await lab.quiet();
  expect(await lab.orphans()).toMatchObject([{ state: "mitigated" }]);
  expect(lab.broker.state().instances).toEqual([]);
});

test("E10-62: a row that was held, and is released while it is adopted, ends with the adoption", async () => {
  const { lab, orphans } = await withAbandoned();
  lab.broker.setRules([{ call: "fetch", do: "503" }]);
  const adopt = await lab.adopt("new", "osb-old");
  await vi.waitFor(() => expect(lab.sent()).toContain("GET osb-old"));
  await orphans.mitigate(key, olga);
  lab.broker.setRules([]);
  expect(await lab.ended("new", adopt)).toMatchObject({ kind: "succeeded" });
  await lab.quiet();
  expect(await lab.orphans()).toMatchObject([{ state: "dismissed" }]);
  expect(deletes(lab)).toEqual([]);
});

test("E10-62: what was adopted is deleted with its instance, although its row in the ledger is open", async () => {
  const { lab } = await withAbandoned();
  expect(await lab.ended("new", await lab.adopt("new", "osb-old"))).toMatchObject({ kind: "succeeded" });
  expect(await lab.ended("new", await lab.delete("new"))).toMatchObject({ kind: "succeeded", result: { asked: true } });
  expect(lab.broker.state().instances).toEqual([]);
});

test("E10-62: what is being changed at the broker, and cannot be fetched, is not adopted before that is over", async () => {
  const lab = await executionLab({
    offering: "unfetchable",
    rules: [{ call: "poll", do: [{ status: 200, body: { state: "in progress" } }] }],
  });
  expect(await lab.ended("new", await lab.adopt("new", "osb-old"))).toMatchObject({ failure: { class: "rejected" } });
});

test("E10-62: an id that another instance has, or that cannot be one, is refused when it is asked for", async () => {
  const server = await catalogServer();
  const platform = await openPlatform({ store: memoryStore() });
  await platform.start();
  onTestFinished(() => platform.journal.kill());
  await platform.brokers.register("acme", { url: server.url, authentication: { kind: "none" } }, olga);
  const wanted = { broker: "acme", offering: "postgres", plan: "small" };
  const [old, next] = ["old", "new"].map((name) => ({ space: "space", name }));
  if (old === undefined || next === undefined) throw new Error("there are two");
  await platform.instances.create(old, wanted, anna);
  await vi.waitFor(async () => expect((await platform.instances.read(old))?.phase).toBe("ready"), { timeout: 10_000 });
  const osbId = (await platform.instances.read(old))?.osbId ?? "";
  await expect(platform.instances.adopt(next, { ...wanted, osbId }, anna)).rejects.toMatchObject({ code: "exists" });
  for (const bad of ["", "a/b", "a\nb", "x".repeat(201), ".."])
    await expect(platform.instances.adopt(next, { ...wanted, osbId: bad }, anna)).rejects.toMatchObject({
      code: "invalid",
    });
  // Its broker is taken away: it is adopted again as what it is, and not as something else, which would be forgotten.
  await platform.brokers.remove("acme", { force: true }, olga);
  const again = () => platform.brokers.register("acme", { url: server.url, authentication: { kind: "none" } }, olga);
  await vi.waitFor(again, { timeout: 10_000 });
  await expect(platform.instances.adopt(old, { ...wanted, osbId: "other" }, anna)).rejects.toMatchObject({
    code: "exists",
  });
  await platform.instances.adopt(old, { ...wanted, osbId }, anna);
  await vi.waitFor(async () => expect((await platform.instances.read(old))?.phase).toBe("ready"), { timeout: 10_000 });
});

/** One broker that is registered twice, with an instance that was created by its first name. */
async function registeredTwice() {
  const server = await catalogServer();
  const platform = await openPlatform({ store: memoryStore() });
  await platform.start();
  onTestFinished(() => platform.journal.kill());
  const authentication = { kind: "none" } as const;
  await platform.brokers.register("acme", { url: server.url, authentication }, olga);
  await platform.brokers.register(
    "twin",
    { url: `${server.url.toUpperCase().replace("HTTP", "http")}/`, authentication },
    olga,
  );
  const old = { space: "space", name: "old" };
  const wanted = { offering: "postgres", plan: "small" };
  const phase = async (name: string, is: string) =>
    vi.waitFor(async () => expect((await platform.instances.read({ ...old, name }))?.phase).toBe(is), {
      timeout: 10_000,
    });
  await platform.instances.create(old, { ...wanted, broker: "acme" }, anna);
  await phase("old", "ready");
  const osbId = (await platform.instances.read(old))?.osbId ?? "";
  const adopt = (name: string, broker: string) =>
    platform.instances.adopt({ ...old, name }, { ...wanted, broker, osbId }, anna);
  const abandon = () => platform.instances.delete(old, { mode: "abandon", reason: "unused" }, olga);
  const row = keys.orphan("acme", osbId, null);
  return { server, platform, old, adopt, abandon, phase, row };
}

test("E10-62: what an instance has at a broker is not adopted by another name of that broker", async () => {
  const { adopt, abandon, phase, platform } = await registeredTwice();
  await expect(adopt("new", "twin")).rejects.toMatchObject({ code: "exists" });
  await abandon();
  await phase("old", "abandoned");
  // Asked for at the same time, each sees that the other wants it.
  const asked = await Promise.allSettled([adopt("one", "acme"), adopt("two", "twin")]);
  expect(asked.some(({ status }) => status === "fulfilled")).toBe(true);
  await vi.waitFor(async () => {
    const views = await Promise.all(["one", "two"].map((name) => platform.instances.read({ space: "space", name })));
    expect(views.flatMap((view) => view?.queue ?? [])).toEqual([]);
    expect(views.filter((view) => view?.phase === "ready").length).toBeLessThanOrEqual(1);
  });
});

test("E10-62: what was adopted by another name of its broker is not deleted by the ledger", async () => {
  const { adopt, abandon, phase, platform, row, server } = await registeredTwice();
  await abandon();
  await phase("old", "abandoned");
  await adopt("new", "twin");
  await phase("new", "ready");
  await platform.orphans.mitigate(row, olga);
  await vi.waitFor(async () => expect((await platform.journal.read(row))?.data).toMatchObject({ state: "dismissed" }));
  expect(server.seen.filter(({ method }) => method === "DELETE")).toEqual([]);
});

test("E10-62: what an unmanaged instance has at a broker that was removed is not adopted by another by another name of that broker", async () => {
  const { adopt, phase, platform } = await registeredTwice();
  await platform.brokers.remove("acme", { force: true }, olga);
  await phase("old", "unmanaged");
  await expect(adopt("new", "twin")).rejects.toMatchObject({ code: "exists" });
  await adopt("old", "twin");
  await phase("old", "ready");
});

test("E10-62: what was adopted by a broker that was removed since is not deleted by the ledger of another name of it", async () => {
  const { adopt, abandon, phase, platform, row, server } = await registeredTwice();
  await abandon();
  await phase("old", "abandoned");
  await adopt("new", "twin");
  await phase("new", "ready");
  await platform.brokers.remove("twin", { force: true }, olga);
  await phase("new", "unmanaged");
  await platform.orphans.mitigate(row, olga);
  await vi.waitFor(async () => expect((await platform.journal.read(row))?.open).toEqual([]));
  expect((await platform.journal.read(row))?.data).toMatchObject({ state: "dismissed" });
  expect(server.seen.filter(({ method }) => method === "DELETE")).toEqual([]);
});

test("E10-62: what the ledger deletes is not adopted by another name of its broker", async () => {
  const { adopt, abandon, phase, platform, row, server } = await registeredTwice();
  await abandon();
  await phase("old", "abandoned");
  server.changes = "hangs";
  await platform.orphans.mitigate(row, olga);
  await vi.waitFor(() => expect(server.seen.some(({ method }) => method === "DELETE")).toBe(true));
  await adopt("new", "twin");
  await phase("new", "failed");
});

test("E10-62: what the broker has begun to delete for a row is not adopted before that has ended, although the row is dismissed", async () => {
  const catalog = catalogOf({ postgres: ["small"] });
  Object.assign(catalog.services[0] as object, { instances_retrievable: true });
  const server = await catalogServer({ catalog });
  const lab = await platformInTime(server);
  const { instances, orphans } = lab.platform;
  let state = "in progress";
  let fetched = 404;
  server.reply = ({ method, path }) => {
    if (!path.includes("service_instances")) return undefined;
    if (method === "PUT") return { status: 500, body: {} };
    if (method === "DELETE") return { status: 202, body: { operation: "its-delete" } };
    return path.includes("last_operation") ? { status: 200, body: { state } } : { status: fetched, body: {} };
  };
  await instances.create({ space: "space", name: "old" }, { offering: "postgres", plan: "small" }, anna);
  const polled = () => server.seen.filter(({ path }) => path.includes("last_operation")).length;
  await lab.passUntil(500, () => polled() > 0);
  const [row] = (await orphans.list({})).items;
  if (row === undefined) throw new Error("there is no row");
  expect(await orphans.dismiss(row.key, "I want it", olga)).toMatchObject({ state: "dismissed" });
  fetched = 200;
  const ref = { space: "space", name: "new" };
  const adopt = async () => {
    const wanted = { offering: "postgres", plan: "small", osbId: row.instanceOsbId };
    const asked = await instances.adopt(ref, wanted, olga);
    const operation = asked.kind === "accepted" ? asked.operation : "";
    await lab.passUntil(100, async () => (await instances.operation(ref, operation))?.state !== "open");
    return instances.operation(ref, operation);
  };
  await lab.passUntil(100, async () => ((await lab.platform.journal.read(row.key))?.open.length ?? 0) === 0);
  expect(await adopt()).toMatchObject({ state: "failed", message: expect.stringContaining("at work at it") });
  // The broker could not delete it: it is there, and nobody is at it any more.
  state = "failed";
  expect(await adopt()).toMatchObject({ state: "succeeded" });
});

test("E10-62: a DELETE that is on its way when its row is dismissed stands in the row, and what it may delete is not adopted meanwhile", async () => {
  const catalog = catalogOf({ postgres: ["small"] });
  Object.assign(catalog.services[0] as object, { instances_retrievable: true });
  const server = await catalogServer({ catalog });
  const lab = await platformInTime(server);
  const { instances, orphans } = lab.platform;
  let state = "in progress";
  let fetched = 404;
  let isOnItsWay = false;
  server.delayed = (send, { method }) => {
    if (method === "DELETE") isOnItsWay = true;
    else send();
  };
  server.reply = ({ method, path }) => {
    if (!path.includes("service_instances")) return undefined;
    if (method === "PUT") return { status: 500, body: {} };
    return path.includes("last_operation") ? { status: 200, body: { state } } : { status: fetched, body: {} };
  };
  await instances.create({ space: "space", name: "old" }, { offering: "postgres", plan: "small" }, anna);
  await lab.passUntil(500, () => isOnItsWay);
  const [row] = (await orphans.list({})).items;
  if (row === undefined) throw new Error("there is no row");
  const entries = await lab.platform.journal.entries(row.key);
  expect(entries.map(({ kind }) => kind)).toContain("mitigation-started");
  await orphans.dismiss(row.key, "I want it", olga);
  await lab.passUntil(100, async () => ((await lab.platform.journal.read(row.key))?.open.length ?? 0) === 0);
  fetched = 200;
  const ref = { space: "space", name: "new" };
  const adopt = async () => {
    const asked = await instances.adopt(ref, { offering: "postgres", plan: "small", osbId: row.instanceOsbId }, olga);
    const operation = asked.kind === "accepted" ? asked.operation : "";
    await lab.passUntil(100, async () => (await instances.operation(ref, operation))?.state !== "open");
    return instances.operation(ref, operation);
  };
  expect(await adopt()).toMatchObject({ state: "failed", message: expect.stringContaining("at work at it") });
  state = "failed";
  expect(await adopt()).toMatchObject({ state: "succeeded" });
});

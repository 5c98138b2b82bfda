import { expect, onTestFinished, test, vi } from "vitest";
import { isPlannedFor, isSuccessorOf } from "../src/decisions/same-binding.js";
import { renewalTime, successorName } from "../src/decisions/schedule-rotation.js";
import { JournalInstances } from "../src/queue/instances.js";
import { keys } from "../src/records/keys.js";
import { isName } from "../src/records/name.js";
import { rotationRecords } from "../src/records/rotation-record.js";
import { type CatalogServer, catalogOf, catalogServer } from "./catalog-server.js";
import { anna, platformInTime } from "./platform-in-time.js";

const hourMs = 60 * 60_000;
/** After so long a binding is to be renewed; after twice as long it expires. */
const renewMs = 6 * 60_000;

/** A platform whose broker gives bindings that are to be renewed soon. */
async function renewing(server: CatalogServer) {
  const lab = await platformInTime(server, { overlapMs: renewMs });
  const inTime = (ms: number) => new Date(lab.clock.wallMs() + ms).toISOString();
  server.reply = ({ method, path }) =>
    method === "PUT" && path.includes("service_bindings")
      ? {
          status: 201,
          body: {
            credentials: { user: "u" },
            metadata: { renew_before: inTime(renewMs), expires_at: inTime(2 * renewMs) },
          },
        }
      : undefined;
  const ref = await lab.create("orders", "small");
  const { instances, rotations } = lab.platform;
  await instances.bind(ref, { name: "app" }, anna);
  await lab.passUntil(10, async () => (await lab.phases(ref)).app === "bound");
  return { lab, instances, rotations, ref, phases: () => lab.phases(ref) };
}

function rotatableCatalog() {
  const catalog = catalogOf({ postgres: ["small"] });
  for (const plan of (catalog.services[0] as { plans: object[] }).plans)
    Object.assign(plan, { binding_rotatable: true });
  return catalog;
}

test("P-BIND-10, P-ROT-02, E10-47: a binding is renewed on time, kept for the overlap, and unbound", async () => {
  const server = await catalogServer({ catalog: rotatableCatalog() });
  const { lab, rotations, phases } = await renewing(server);
  const boundAt = lab.clock.wallMs();
  const due = await rotations.due({});
  expect(due.items).toMatchObject([{ space: "space", instance: "orders", binding: "app", state: "scheduled" }]);
  expect((await rotations.due({ space: "space" })).items).toEqual(due.items);
  expect(await rotations.due({ space: "other", limit: 1 }), "nor the name of anything as its end").toEqual({
    items: [],
    next: null,
  });
  await lab.passUntil(10_000, async () => (await phases())["app.2"] === "bound");
  expect(lab.clock.wallMs()).toBeLessThan(boundAt + renewMs);
  expect(lab.clock.wallMs()).toBeGreaterThan(boundAt + renewMs / 2);
  expect(await phases()).toEqual({ app: "bound", "app.2": "bound" });
  await lab.passUntil(10_000, async () => (await phases()).app === undefined);
  const [unbound] = server.seen.filter(({ method }) => method === "DELETE");
  expect(unbound?.path).toContain("/service_bindings/");
  const next = (await rotations.due({})).items.map(({ binding }) => binding);
  expect(next.filter((binding) => binding !== "app")).toContain("app.2");
});

/** A platform with a binding that its broker gives for ever, or, with a time, to be renewed then. */
async function boundOnce(renewBefore?: (now: number) => string) {
  const server = await catalogServer({ catalog: rotatableCatalog() });
  const lab = await platformInTime(server, { overlapMs: renewMs });
  const ref = await lab.create("orders", "small");
  if (renewBefore !== undefined) {
    const metadata = { renew_before: renewBefore(lab.clock.wallMs()) };
    server.reply = ({ method, path }) =>
      method === "PUT" && path.includes("service_bindings")
        ? { status: 201, body: { credentials: {}, metadata } }
        : undefined;
  }
  await lab.platform.instances.bind(ref, { name: "app" }, anna);
  await lab.passUntil(10, async () => (await lab.phases(ref)).app === "bound");
  server.reply = undefined;
  const unbinds = () => server.seen.filter(({ method, path }) => method === "DELETE" && path.includes("_bindings"));
  return { server, lab, ref, unbinds, ...lab.platform, phases: () => lab.phases(ref) };
}

test.each([
  ["for ever", undefined],
  ["for a year", (now: number) => new Date(now + 365 * 24 * hourMs).toISOString()],
])("E10-47: a binding %s that is rotated by hand is kept for the overlap, and then unbound", async (_title, time) => {
  const { lab, ref, instances, rotations, phases, unbinds } = await boundOnce(time);
  const app = (await lab.read(ref)).bindings[0]?.osbId ?? "";
  await instances.rotate(ref, "app", undefined, anna);
  await lab.passUntil(10, async () => (await phases())["app.2"] === "bound");
  const rotatedAt = lab.clock.wallMs();
  const due = async () => (await rotations.due({ space: "space" })).items;
  await lab.passUntil(100, async () => (await due())[0]?.state === "overlapping");
  expect(await due()).toMatchObject([{ binding: "app", successor: "app.2" }]);
  expect(await phases()).toEqual({ app: "bound", "app.2": "bound" });
  await lab.passUntil(5_000, async () => (await phases()).app === undefined);
  expect(lab.clock.wallMs()).toBeGreaterThanOrEqual(rotatedAt + renewMs);
  expect(lab.clock.wallMs()).toBeLessThan(rotatedAt + 2 * renewMs);
  expect(unbinds()).toHaveLength(1);
  expect(unbinds()[0]?.path).toContain(app);
  expect(await due()).toEqual([]);
});

test("E10-47: a binding whose successor was unbound in the overlap is not unbound: nothing would be left", async () => {
  const { lab, ref, instances, phases } = await boundOnce();
  await instances.rotate(ref, "app", "next", anna);
  const key = keys.rotation("space", "orders", "app");
  const state = async () => rotationRecords.resource(await lab.platform.journal.read(key))?.data.state;
  await lab.passUntil(100, async () => (await state()) === "overlapping");
  await instances.unbind(ref, "next", anna);
  await lab.passUntil(100, async () => (await phases()).next === undefined);
  await lab.passUntil(5_000, async () => (await state()) === "over");
  expect(await phases()).toEqual({ app: "bound" });
});

test("E10-47: one that is to be renewed, and whose successor was unbound in the overlap, gets another", async () => {
  const server = await catalogServer({ catalog: rotatableCatalog() });
  const { lab, ref, instances, phases } = await renewing(server);
  await lab.passUntil(10_000, async () => (await phases())["app.2"] === "bound");
  server.reply = undefined;
  await instances.unbind(ref, "app.2", anna);
  await lab.passUntil(100, async () => (await phases())["app.2"] === undefined);
  await lab.passUntil(10_000, async () => (await phases()).app === undefined);
  expect(await phases()).toEqual({ "app.2": "bound" });
});

test("E10-47: one that is rotated once more in its overlap is kept for a whole overlap beside its new successor", async () => {
  const { lab, ref, instances, phases } = await boundOnce();
  await instances.rotate(ref, "app", "next", anna);
  const key = keys.rotation("space", "orders", "app");
  const data = async () => rotationRecords.resource(await lab.platform.journal.read(key))?.data;
  await lab.passUntil(100, async () => (await data())?.state === "overlapping");
  await lab.clock.advance(renewMs / 2);
  await instances.unbind(ref, "next", anna);
  await lab.passUntil(100, async () => (await phases()).next === undefined);
  await instances.rotate(ref, "app", "other", anna);
  await lab.passUntil(100, async () => (await data())?.successor === "other");
  const rotatedAt = lab.clock.wallMs();
  await lab.passUntil(5_000, async () => (await phases()).app === undefined);
  expect(lab.clock.wallMs()).toBeGreaterThanOrEqual(rotatedAt + renewMs);
  expect(await phases()).toEqual({ other: "bound" });
});

test("E10-31, E10-47: whoever cancels the unbind after the overlap keeps the old binding, and the rotation ends", async () => {
  const { server, lab, ref, instances, phases } = await boundOnce();
  await instances.rotate(ref, "app", "next", anna);
  const key = keys.rotation("space", "orders", "app");
  const state = async () => rotationRecords.resource(await lab.platform.journal.read(key))?.data.state;
  await lab.passUntil(100, async () => (await state()) === "overlapping");
  // What waits behind an update that hangs was not sent.
  server.changes = "hangs";
  await lab.clock.advance(renewMs - 5_000);
  await instances.update(ref, { parameters: '{"a":1}' }, anna);
  await lab.passUntil(1_000, async () => (await phases()).app === "unbinding");
  const unbind = (await lab.read(ref)).queue.find(({ op }) => op === "unbind")?.operation ?? "";
  await instances.cancel(ref, unbind, anna);
  await lab.passUntil(1_000, async () => (await state()) === "over");
  expect(await phases()).toEqual({ app: "bound", next: "bound" });
});

test("E10-33, P-ROT-02: a rotation that failed is retried as a rotation", async () => {
  const { server, lab, ref, instances, phases } = await boundOnce();
  server.reply = () => ({ status: 400, body: { description: "no more users" } });
  const failed = await instances.rotate(ref, "app", "next", anna);
  await lab.passUntil(10, async () => (await phases()).next === "failed");
  server.reply = undefined;
  await instances.retry(ref, failed.kind === "accepted" ? failed.operation : "", anna);
  await lab.passUntil(10, async () => (await phases()).next === "bound");
  expect((await lab.read(ref)).bindings).toMatchObject([
    { name: "app", successor: "next" },
    { name: "next", predecessor: "app" },
  ]);
});

test("a rotation without a name for the successor takes one that is free, and is the same when asked again", async () => {
  const { lab, ref, instances, phases } = await boundOnce();
  await instances.bind(ref, { name: "app.2" }, anna);
  await lab.passUntil(10, async () => (await phases())["app.2"] === "bound");
  const once = await instances.rotate(ref, "app", undefined, { ...anna, idempotencyKey: "k" });
  await lab.passUntil(10, async () => (await phases())["app.3"] === "bound");
  const again = await instances.rotate(ref, "app", undefined, { ...anna, idempotencyKey: "k" });
  expect(again).toMatchObject({ kind: "repeated", operation: once.kind === "accepted" ? once.operation : "" });
});

test("a rotation whose binding was unbound by somebody ends and is not listed", async () => {
  const server = await catalogServer({ catalog: rotatableCatalog() });
  const { lab, rotations, instances, ref, phases } = await renewing(server);
  await instances.unbind(ref, "app", anna);
  await lab.passUntil(10, async () => (await phases()).app === undefined);
  expect((await rotations.due({})).items).toEqual([]);
  const key = keys.rotation("space", "orders", "app");
  const state = async () => rotationRecords.resource(await lab.platform.journal.read(key))?.data.state;
  await lab.passUntil(10_000, async () => (await state()) === "over");
  expect(await phases()).toEqual({});
});

test("a binding that was given the name of an older one is not renewed in the other's time", async () => {
  const server = await catalogServer({ catalog: rotatableCatalog() });
  const { lab, instances, ref, phases } = await renewing(server);
  await instances.unbind(ref, "app", anna);
  await lab.passUntil(10, async () => (await phases()).app === undefined);
  server.reply = undefined;
  await instances.bind(ref, { name: "app" }, anna);
  await lab.passUntil(10, async () => (await phases()).app === "bound");
  const key = keys.rotation("space", "orders", "app");
  const read = async () => rotationRecords.resource(await lab.platform.journal.read(key))?.data.state;
  await lab.passUntil(10_000, async () => (await read()) === "over");
  expect(await phases()).toEqual({ app: "bound" });
});

test("E10-47: who is bound anew under the name of one that was rotated away is not unbound at the end of its overlap", async () => {
  const { lab, ref, instances, rotations, phases, unbinds } = await boundOnce();
  await instances.rotate(ref, "app", "next", anna);
  const key = keys.rotation("space", "orders", "app");
  const state = async () => rotationRecords.resource(await lab.platform.journal.read(key))?.data.state;
  await lab.passUntil(100, async () => (await state()) === "overlapping");
  await instances.unbind(ref, "app", anna);
  await lab.passUntil(100, async () => (await phases()).app === undefined);
  await instances.bind(ref, { name: "app" }, anna);
  await lab.passUntil(100, async () => (await phases()).app === "bound");
  expect((await rotations.due({ space: "space" })).items, "what is planned is for another one").toEqual([]);
  await lab.passUntil(5_000, async () => ["renewed", "over"].includes((await state()) ?? ""));
  expect(await phases()).toEqual({ app: "bound", next: "bound" });
  expect(unbinds()).toHaveLength(1);
});

test("E10-47: a process that has looked before its binding was another's, and wakes up late, unbinds nothing", async () => {
  const { lab, ref, instances, phases, unbinds } = await boundOnce();
  await instances.rotate(ref, "app", "next", anna);
  const key = keys.rotation("space", "orders", "app");
  const data = async () => rotationRecords.resource(await lab.platform.journal.read(key))?.data;
  await lab.passUntil(100, async () => (await data())?.state === "overlapping");
  const seen = await lab.read(ref);
  await instances.unbind(ref, "app", anna);
  await lab.passUntil(100, async () => (await phases()).app === undefined);
  await instances.bind(ref, { name: "app" }, anna);
  await lab.passUntil(100, async () => (await phases()).app === "bound");
  // Between its look and what it asks for, all of that has happened.
  const looks = vi.spyOn(JournalInstances.prototype, "read").mockResolvedValue(seen);
  onTestFinished(() => looks.mockRestore());
  await lab.passUntil(5_000, async () => unbinds().length > 1 || (await data())?.message != null);
  expect(looks).toHaveBeenCalled();
  looks.mockRestore();
  await lab.passUntil(5_000, async () => (await data())?.state === "renewed");
  expect(await phases()).toEqual({ app: "bound", next: "bound" });
  expect(unbinds()).toHaveLength(1);
});

test("E10-47: one that was given the name of a renewed one has a successor of its own, and is not unbound before", async () => {
  const server = await catalogServer({ catalog: rotatableCatalog() });
  const { lab, instances, ref, phases } = await renewing(server);
  const bindings = async () => (await lab.read(ref)).bindings;
  const soon = server.reply;
  // The successor is for ever.
  server.reply = undefined;
  await lab.passUntil(10_000, async () => (await phases()).app === undefined);
  expect(await phases()).toEqual({ "app.2": "bound" });
  server.reply = soon;
  await instances.bind(ref, { name: "app" }, anna);
  await lab.passUntil(10, async () => (await phases()).app === "bound");
  const id = (await bindings()).find(({ name }) => name === "app")?.osbId ?? "";
  const isUnbound = () => server.seen.some(({ method, path }) => method === "DELETE" && path.includes(id));
  await lab.passUntil(10_000, async () => isUnbound() || (await phases())["app.3"] === "bound");
  expect(isUnbound()).toBe(false);
  expect(await phases()).toEqual({ app: "bound", "app.2": "bound", "app.3": "bound" });
});

test("E10-47: one whose successor's name somebody else has by now can be rotated", async () => {
  const { lab, ref, instances, phases } = await boundOnce();
  await instances.rotate(ref, "app", "next", anna);
  await lab.passUntil(10, async () => (await phases()).next === "bound");
  await instances.unbind(ref, "next", anna);
  await lab.passUntil(10, async () => (await phases()).next === undefined);
  await instances.bind(ref, { name: "next" }, anna);
  await lab.passUntil(10, async () => (await phases()).next === "bound");
  await instances.rotate(ref, "app", "other", anna);
  await lab.passUntil(10, async () => (await phases()).other === "bound");
  expect(await phases()).toEqual({ app: "bound", next: "bound", other: "bound" });
});

test("E10-33: a rotation that failed is not retried for another binding that has the name by now", async () => {
  const { server, lab, ref, instances, phases } = await boundOnce();
  server.reply = () => ({ status: 400, body: { description: "no more users" } });
  const failed = await instances.rotate(ref, "app", "next", anna);
  await lab.passUntil(10, async () => (await phases()).next === "failed");
  server.reply = undefined;
  await instances.unbind(ref, "app", anna);
  await lab.passUntil(10, async () => (await phases()).app === undefined);
  await instances.bind(ref, { name: "app" }, anna);
  await lab.passUntil(10, async () => (await phases()).app === "bound");
  const retried = instances.retry(ref, failed.kind === "accepted" ? failed.operation : "", anna);
  await expect(retried).rejects.toMatchObject({ code: "too-late" });
});

test("P-BIND-09, P-ROT-02: one whose successor cannot be bound is tried until it expires, and then not any more", async () => {
  const server = await catalogServer({ catalog: rotatableCatalog() });
  const { lab, ref, phases, instances } = await renewing(server);
  server.reply = () => ({ status: 400, body: { description: "no more users" } });
  const key = keys.rotation("space", "orders", "app");
  const read = async () => rotationRecords.resource(await lab.platform.journal.read(key))?.data;
  await lab.passUntil(10_000, async () => (await read())?.state === "failed");
  expect((await read())?.message).toMatch(/^it expired at /);
  const puts = server.seen.filter(({ method, path }) => method === "PUT" && path.includes("service_bindings"));
  expect(puts.length).toBeGreaterThan(2);
  expect(puts.length).toBeLessThan(20);
  expect((await phases()).app).toBe("bound");
  await expect(instances.credentials(ref, "app")).rejects.toThrow(/expired at/);
});

test("P-ROT-01: where bindings cannot be rotated, none is, and whoever looks is told why", async () => {
  const server = await catalogServer();
  const { lab, rotations, phases } = await renewing(server);
  await lab.passUntil(10_000, async () => (await rotations.due({})).items[0]?.message != null);
  expect((await rotations.due({})).items[0]?.message).toMatch(/would not be accepted|does not rotate/);
  expect(await phases()).toEqual({ app: "bound" });
});

test.each([
  ["its own", { predecessorId: "id-1", createdAt: 9 }, true],
  ["that of an earlier one of the name", { predecessorId: "id-0", createdAt: 9 }, false],
  ["its own, kept without an id", { createdAt: 6 }, true],
  ["that of an earlier one of the name, kept without an id", { createdAt: 4 }, false],
])("whose successor a binding is: %s", (_title, other, expected) => {
  const app = { name: "app", id: "id-1", createdAt: 5 };
  expect(isSuccessorOf({ predecessor: "app", ...other }, app)).toBe(expected);
  expect(isSuccessorOf({ ...other, predecessor: "web" }, app), "of another name").toBe(false);
});

test.each([
  ["it", { bindingId: "id-1" }, 9, true],
  ["an earlier one of the name", { bindingId: "id-0" }, 9, false],
  ["it, kept without an id", {}, 6, true],
  ["an earlier one of the name, kept without an id", {}, 4, false],
])("for which binding a rotation was planned: %s", (_title, rotation, plannedAt, expected) => {
  expect(isPlannedFor(rotation, plannedAt, { id: "id-1", createdAt: 5 })).toBe(expected);
});

const at = (ms: number) => new Date(ms).toISOString();
const now = Date.UTC(2030, 0, 1);
const none = { space: "s", instance: "i", binding: "b", expiresAt: null, renewBefore: null };

test.each([
  ["no time at all", none, null],
  ["renewal in 10 hours", { ...none, renewBefore: at(now + 10 * hourMs) }, now + 10 * hourMs - 10 * 60_000],
  ["expiry in 10 hours", { ...none, expiresAt: at(now + 10 * hourMs) }, now + 8 * hourMs],
  [
    "the earlier of both",
    { ...none, expiresAt: at(now + 2 * hourMs), renewBefore: at(now + 10 * hourMs) },
    now + 1.6 * hourMs,
  ],
  ["a time that has passed", { ...none, renewBefore: at(now - hourMs) }, now + 60_000],
  ["a time that nobody will see", { ...none, expiresAt: "9999-12-31T23:59:59Z" }, null],
  ["a time that is none", { ...none, expiresAt: "tomorrow" }, null],
])("when a binding is renewed: %s", (_title, times, expected) => {
  expect(renewalTime(times, now)).toBe(expected);
});

test("successors have names that are names, and that nobody has", () => {
  expect(successorName("app", new Set(["app"]))).toBe("app.2");
  expect(successorName("app.2", new Set(["app.2", "app.3"]))).toBe("app.4");
  expect(successorName("v1.x", new Set())).toBe("v1.x.2");
  const long = "a".repeat(63);
  expect(isName(successorName(long, new Set()))).toBe(true);
  expect(isName(successorName(`${"a".repeat(60)}.-b`, new Set()))).toBe(true);
});

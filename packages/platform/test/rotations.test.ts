import { expect, test } from "vitest";
import { renewalTime, successorName } from "../src/decisions/schedule-rotation.js";
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

import { expect, test } from "vitest";
import { defaultPauses } from "../src/operations/pauses.js";
import { catalogServer } from "./catalog-server.js";
import { anna, olga, platformInTime } from "./platform-in-time.js";
import { operationOf } from "./queue-stories.js";

const deadlineMs = 120_000;

/** An instance of a platform on which nothing waits longer than two minutes for its broker. */
async function impatient() {
  const server = await catalogServer();
  const lab = await platformInTime(server, { pauses: { ...defaultPauses, deadlineMs } });
  const ref = await lab.create("orders", "small");
  const { instances, freezes } = lab.platform;
  const stateOf = async (operation: string) => (await instances.operation(ref, operation))?.state;
  return {
    server,
    lab,
    ref,
    instances,
    freezes,
    update: async (parameters: string) => operationOf(await instances.update(ref, { parameters }, anna)),
    pass: async (ms: number) => {
      for (let passed = 0; passed < ms; passed += 10_000) await lab.clock.advance(10_000);
    },
    /** How they have ended, and which updates the broker was sent by then. */
    ends: async (...operations: readonly string[]) => {
      const isOver = async () => (await Promise.all(operations.map(stateOf))).every((state) => state !== "open");
      await lab.passUntil(1_000, isOver);
      return Promise.all(operations.map(stateOf));
    },
    sent: () => server.seen.filter(({ method }) => method === "PATCH").length,
  };
}

type Impatient = Awaited<ReturnType<typeof impatient>>;

test.each<[string, (of: Impatient) => Promise<readonly [readonly string[], () => Promise<unknown>]>]>([
  [
    "a lock",
    async ({ instances, ref, update }) => {
      await instances.lock(ref, { reason: "end of the year" }, olga);
      return [[await update('{"a":1}'), await update('{"b":1}')], () => instances.unlock(ref, olga)];
    },
  ],
  [
    "someone who held it",
    async ({ instances, ref, update }) => {
      await instances.lock(ref, { reason: "for the moment" }, olga);
      const held = await update('{"a":1}');
      await instances.hold(ref, held, "not yet", anna);
      await instances.unlock(ref, olga);
      return [[held], () => instances.release(ref, held, anna)];
    },
  ],
  [
    "a freeze",
    async ({ freezes, lab, update }) => {
      const { id } = await freezes.freeze({ reason: "end of the year" }, olga);
      const first = await update('{"a":1}');
      // The second one never gets to see the freeze.
      await lab.passUntil(
        100,
        async () => (await lab.read({ space: "space", name: "orders" })).queue[0]?.state === "waiting",
      );
      return [[first, await update('{"b":1}')], () => freezes.thaw(id, olga)];
    },
  ],
])("E5, E10-56: the time for which %s keeps a change back is not the broker's", async (_title, keepBack) => {
  const of = await impatient();
  const [operations, letGo] = await keepBack(of);
  await of.pass(deadlineMs + 20_000);
  expect(of.sent()).toBe(0);
  await letGo();
  expect(await of.ends(...operations)).toEqual(operations.map(() => "succeeded"));
  expect(of.sent()).toBe(operations.length);
});

test("E10-56: the time that another change takes at the broker does not count for what waits behind it", async () => {
  const { server, lab, update, pass, ends, sent } = await impatient();
  let isDone = false;
  server.reply = ({ method, path }) => {
    if (path.endsWith("last_operation")) return { status: 200, body: { state: isDone ? "succeeded" : "in progress" } };
    return method === "PATCH" && !isDone ? { status: 202, body: {} } : undefined;
  };
  const slow = await update('{"a":1}');
  await lab.passUntil(100, () => sent() === 1);
  const behind = await update('{"b":1}');
  await pass(deadlineMs + 20_000);
  isDone = true;
  expect(await ends(slow, behind)).toEqual(["succeeded", "succeeded"]);
});

test("E5, E10-56: what was held behind a failure for longer than the deadline is sent when it is released", async () => {
  const { server, instances, ref, update, pass, ends } = await impatient();
  server.reply = ({ method }) => (method === "PATCH" ? { status: 400, body: { description: "no" } } : undefined);
  await instances.lock(ref, { reason: "for the moment" }, olga);
  const refused = await update('{"a":{"b":1}}');
  const held = await update('{"a":{"b":1,"c":1}}');
  await instances.setPolicy(ref, { onFailure: "halt" }, anna);
  await instances.unlock(ref, olga);
  expect(await ends(refused)).toEqual(["failed"]);
  server.reply = undefined;
  await pass(deadlineMs + 20_000);
  await instances.release(ref, held, anna);
  expect(await ends(held)).toEqual(["succeeded"]);
});

test("E10-56: all that was wanted before an outage that is longer than the deadline fails, and what was wanted later is done", async () => {
  const { server, lab, ref, update, ends } = await impatient();
  server.authorization = "another";
  const first = await update('{"a":1}');
  const second = await update('{"b":1}');
  const downAt = lab.clock.wallMs();
  await lab.passUntil(5_000, () => lab.clock.wallMs() > downAt + deadlineMs);
  const late = await update('{"c":1}');
  server.authorization = undefined;
  await lab.platform.brokers.relist("acme", olga);
  expect(await ends(first, second, late)).toEqual(["failed", "failed", "succeeded"]);
  expect((await lab.read(ref)).applied?.parameters).toBe('{"c":1}');
});

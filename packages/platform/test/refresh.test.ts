import { setTimeout as pause } from "node:timers/promises";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { openPlatform } from "../src/index.js";
import { startMisbehaving } from "../src/testing/index.js";
import { executionLab } from "./execution-lab.js";
import { operationOf } from "./queue-stories.js";
import { shortPauses } from "./short-pauses.js";

const credentials = { username: "platform", password: "secret" };
const anna = { by: { actor: { type: "user", subject: "anna" } } } as const;
const ben = { by: { actor: { type: "user", subject: "ben" } } } as const;
const ref = { space: "s", name: "i" };

/** An instance with `{"size":1}` that is locked: what is asked of it waits until it is let go. */
async function locked() {
  const broker = await startMisbehaving({ credentials });
  onTestFinished(() => broker.stop());
  const platform = await openPlatform({ store: memoryStore(), pauses: shortPauses });
  await platform.start();
  onTestFinished(() => platform.stop());
  const { brokers, instances } = platform;
  await brokers.register("b", { url: broker.url, authentication: { kind: "basic", ...credentials } }, anna);
  const until = async (isSo: () => Promise<boolean>) => {
    for (let tries = 0; tries < 3_000; tries++) {
      if (await isSo()) return;
      await pause(10);
    }
    throw new Error("it never came to be");
  };
  const isIdle = async () => (await instances.read(ref))?.queue.length === 0;
  await instances.create(ref, { offering: "misbehaving", plan: "good", parameters: '{"size":1}' }, anna);
  await until(isIdle);
  await instances.lock(ref, { reason: "not yet" }, anna);
  return {
    broker,
    instances,
    update: async (parameters: string) => operationOf(await instances.update(ref, { parameters }, anna)),
    letGo: async () => {
      await instances.unlock(ref, anna);
      await until(isIdle);
      return instances.read(ref);
    },
    /** Parameters of all updates that the broker was sent. */
    sent: () =>
      broker
        .requests()
        .filter(({ method }) => method === "PATCH")
        .map(({ body }) => JSON.parse(body).parameters),
  };
}

test("E10-31, E10-35: a refresh sends nothing of what was cancelled before it", async () => {
  const { instances, update, letGo, sent } = await locked();
  await update('{"size":2}');
  const danger = await update('{"danger":true}');
  await instances.refresh(ref, ben);
  await instances.cancel(ref, danger, anna);
  expect((await instances.read(ref))?.desired?.parameters).toBe('{"size":2}');
  expect(await letGo()).toMatchObject({ applied: { parameters: '{"size":2}' } });
  expect(sent()).toEqual([{ size: 2 }, { size: 2 }]);
});

test("E5, E10-35: a refresh sends nothing of what the broker has refused before it", async () => {
  const { broker, instances, update, letGo, sent } = await locked();
  broker.setRules([{ call: "update", do: ["400"] }]);
  await update('{"danger":true}');
  await instances.refresh(ref, ben);
  expect(await letGo()).toMatchObject({
    applied: { parameters: '{"size":1}' },
    failures: [{ paths: ["/parameters/danger"] }],
  });
  expect(sent()).toEqual([{ danger: true }, { size: 1 }]);
});

test("E10-35: a refresh that was kept with a text of its own sends what is applied, too", async () => {
  const lab = await executionLab();
  await lab.ended("db", await lab.create("db", { parameters: '{"size":1}' }));
  const refresh = await lab.update("db", { op: "refresh", parameters: '{"danger":true}' });
  expect(await lab.ended("db", refresh)).toMatchObject({ kind: "succeeded" });
  const [sent] = lab.broker.requests().filter(({ method }) => method === "PATCH");
  expect(JSON.parse(sent?.body ?? "").parameters).toEqual({ size: 1 });
  expect((await lab.data("db"))?.applied?.parameters).toBe('{"size":1}');
});

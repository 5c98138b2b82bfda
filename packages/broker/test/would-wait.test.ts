import { setTimeout as pause } from "node:timers/promises";
import { systemClock } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { defineService, RetryLater, type Work } from "../src/index.js";
import { type TestBroker, type TestBrokerOptions, testBroker } from "../src/testing/index.js";

const sync = { acceptsIncomplete: false };

async function flowOf(
  provision: (operation: Work) => Promise<void>,
  options: Partial<TestBrokerOptions> = {},
): Promise<TestBroker> {
  const service = defineService({
    id: "s-1",
    name: "database",
    description: "A database",
    plans: { only: { id: "p-1", description: "The only one" } },
    provision,
  });
  const flow = await testBroker({ services: [service], ...options });
  onTestFinished(() => flow.stop());
  return flow;
}

const sleeper = (operation: Work) => operation.sleep("boots", 3_600_000);

test("a request that would wait for the clock for ever says so instead: a sleep", async () => {
  const flow = await flowOf(sleeper);
  await expect(flow.provision("i1", sync)).rejects.toThrow(
    "would wait for the clock: use advance. The provision of i1 goes on in 3600000 ms, and the clock of a test stands still; " +
      "ask without await, advance(3600000), then await the answer",
  );
});

test("the same for one that looks again later", async () => {
  const flow = await flowOf(async () => {
    throw new RetryLater("the host is booting", { afterMs: 10_000 });
  });
  await expect(flow.provision("i1", sync)).rejects.toThrow("The provision of i1 goes on in 10000 ms");
});

test("the same for one that fails, with its error", async () => {
  const flow = await flowOf(
    async (operation) => {
      await operation.step("reserve a host", () => {
        throw new Error("no route to host");
      });
    },
    { journal: { random: () => 1 } },
  );
  await expect(flow.provision("i1", sync)).rejects.toThrow(
    'would wait for the clock: use advance. The provision of i1 failed with "Error: no route to host" and is tried again in 500 ms',
  );
});

test("the same for one that waits a little for the end", async () => {
  const flow = await flowOf(sleeper, { async: { provision: { mode: "prefer", answerWithinMs: 500 } } });
  await expect(flow.provision("i1")).rejects.toThrow("would wait for the clock: use advance");
});

test("who advances the clock is answered", async () => {
  const flow = await flowOf(sleeper, { syncTimeoutMs: 7_200_000 });
  const first = flow.provision("i1", sync);
  await flow.advance(3_600_000);
  expect((await first).status).toBe(201);
  // Listened to at once.
  const [second] = await Promise.all([flow.provision("i2", sync), flow.advance(3_600_000)]);
  expect(second.status).toBe(201);
  // Not listened to for as long as it takes: nobody is stuck.
  const third = flow.provision("i3", sync);
  await pause(500);
  await flow.advance(3_600_000);
  expect((await third).status).toBe(201);
});

test("a step that takes its time in the world outside is waited for", async () => {
  const flow = await flowOf(async (operation) => {
    await operation.step("really slow", () => pause(1_000));
  });
  expect((await flow.provision("i1", sync)).status).toBe(201);
});

test("what sleeps on one instance does not matter to another one, whose request takes its time", async () => {
  const flow = await flowOf((operation) => (operation.attempt === 1 ? sleeper(operation) : Promise.resolve()));
  await flow.provision("i1");
  await flow.advance();
  const slow = defineService({
    id: "s-2",
    name: "slow",
    description: "Asks someone first",
    plans: { only: { id: "p-2", description: "The only one" } },
    hooks: { before: () => pause(1_000) },
  });
  await flow.broker.offer([...[...flow.broker.catalog.services.values()].map(({ service }) => service), slow]);
  expect((await flow.provision("i2", { service: "slow", ...sync })).status).toBe(201);
});

test("on a clock that goes by itself, a sleep is slept", async () => {
  const flow = await flowOf((operation) => operation.sleep("boots", 500), {
    store: memoryStore(),
    journal: { clock: systemClock },
  });
  expect((await flow.provision("i1", sync)).status).toBe(201);
});

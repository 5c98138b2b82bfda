import { expect, test } from "vitest";
import { defineService, RetryLater } from "../src/index.js";
import { testBroker } from "../src/testing/index.js";

const service = defineService({
  id: "s-1",
  name: "cache",
  description: "A cache",
  plans: { small: { id: "p-1", description: "small" } },
  async provision(operation) {
    operation.describe("booting");
    await operation.sleep("boot", 60_000);
    return { dashboardUrl: "https://cache.example" };
  },
  async bind() {
    return { credentials: { password: "x" } };
  },
});

test("a provision goes on over time and ends, and its instance can be bound", async () => {
  const flow = await testBroker({ services: [service] });
  const { status, body } = await flow.provision("i1");
  expect(status).toBe(202);
  await flow.advance();
  expect((await flow.lastOperation("i1", { operation: body.operation })).body).toEqual({
    state: "in progress",
    description: "booting",
  });
  await flow.advance(60_000);
  expect((await flow.lastOperation("i1")).body.state).toBe("succeeded");
  expect((await flow.bind("i1", "b1", { acceptsIncomplete: false })).body).toEqual({ credentials: { password: "x" } });
  await flow.stop();
});

test("a provision looks until there is something to see, and the state has it", async () => {
  const looks: number[] = [];
  const host = defineService({
    id: "s-2",
    name: "host",
    description: "A host that boots",
    plans: { small: { id: "p-2", description: "small" } },
    state: { type: "object", properties: { address: { type: "string" } }, required: ["address"] },
    async provision(operation) {
      const address = await operation.poll(
        "the host boots",
        ({ looks: before }) => {
          looks.push(before);
          if (before === 1) throw new RetryLater("it is busy", { afterMs: 120_000 });
          return before < 2 ? undefined : "10.0.0.7";
        },
        { everyMs: 60_000 },
      );
      return { state: { address }, dashboardUrl: `https://${address}` };
    },
  });
  const flow = await testBroker({ services: [host] });
  await flow.provision("i1");
  await flow.advance(59_000);
  expect(looks).toEqual([0]);
  await flow.advance(1_000);
  expect(looks).toEqual([0, 1]);
  await flow.advance(119_000);
  expect((await flow.lastOperation("i1")).body.state).toBe("in progress");
  await flow.advance(1_000);
  expect(looks).toEqual([0, 1, 2]);
  expect((await flow.lastOperation("i1")).body.state).toBe("succeeded");
  expect((await flow.provision("i1")).body).toEqual({ dashboard_url: "https://10.0.0.7" });
  await flow.stop();
});

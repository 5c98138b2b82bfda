import { expect, test } from "vitest";
import { defineService } from "../src/index.js";
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

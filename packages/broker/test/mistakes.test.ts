import { describe, expect, onTestFinished, test } from "vitest";
import { defineService, type Service } from "../src/index.js";
import { type TestBroker, testBroker } from "../src/testing/index.js";

/** What authors do wrong is told in a sentence, the first time. */

const base = {
  id: "s-1",
  name: "database",
  description: "A database",
  plans: { only: { id: "p-1", description: "The only one" } },
} as const;

async function flowOf(service: Service): Promise<TestBroker> {
  const flow = await testBroker({ services: [service] });
  onTestFinished(() => flow.stop());
  return flow;
}

describe("what is not awaited", () => {
  test("a step fails the operation, and says which one it was", async () => {
    const flow = await flowOf(
      defineService({
        ...base,
        async provision(operation) {
          void operation.step("create the database", () => "db-1");
        },
      }),
    );
    await flow.provision("i1");
    await flow.advance();
    expect((await flow.lastOperation("i1")).body).toMatchObject({
      state: "failed",
      description: 'step "create the database" was not awaited: write await operation.step(…)',
    });
  });

  test("a saved state fails the operation", async () => {
    const flow = await flowOf(
      defineService({
        ...base,
        async provision(operation) {
          void operation.saveState({ host: "h" });
          await operation.step("create the database", () => "db-1");
        },
      }),
    );
    await flow.provision("i1");
    await flow.advance();
    expect((await flow.lastOperation("i1")).body).toMatchObject({
      state: "failed",
      description: "saving the state was not awaited: write await operation.saveState(…)",
    });
  });
});

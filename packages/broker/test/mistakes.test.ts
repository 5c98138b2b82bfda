import { describe, expect, onTestFinished, test } from "vitest";
import { type DeprovisionInput, defineService, type Service, type Work } from "../src/index.js";
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

const state = {
  type: "object",
  properties: { host: { type: "string" }, port: { type: "integer" } },
  required: ["host"],
} as const;

/** As JavaScript would write it: the types do not let it pass. */
function untyped(definition: object): Service {
  return { ...base, ...definition } as Service;
}

describe("a state that lacks what its schema requires", () => {
  const missing = "the state of database must have required property 'host'";

  test("fails a provision that returns nothing, instead of every bind later", async () => {
    const flow = await flowOf(untyped({ state, async provision() {} }));
    await flow.provision("i1");
    await flow.advance();
    expect((await flow.lastOperation("i1")).body).toMatchObject({
      state: "failed",
      description: `provision returned no state, and its schema refuses what is kept: ${missing}`,
    });
    expect((await flow.fetch("i1")).status).toBe(404);
  });

  test("fails a provision that has saved only a part of it, and deprovision gets that part", async () => {
    const removed: unknown[] = [];
    const service = untyped({
      state,
      async provision(operation: Work) {
        await operation.step("create", () => "db-1");
        await operation.saveState({ port: 5432 });
      },
      async deprovision(_operation: Work, given: DeprovisionInput<object, undefined>) {
        removed.push(given.state, [...given.steps]);
      },
    });
    const flow = await flowOf(service);
    await flow.provision("i1");
    await flow.advance();
    expect((await flow.lastOperation("i1")).body.description).toContain(missing);
    await flow.deprovision("i1");
    await flow.advance();
    expect(removed).toEqual([{ port: 5432 }, [["create", "db-1"]]]);
  });

  test("deprovision also gets what provision returned and its schema refused", async () => {
    const removed: unknown[] = [];
    const service = untyped({
      state,
      provision: async () => ({ state: { port: 5432 } }),
      async deprovision(_operation: Work, given: DeprovisionInput<object, undefined>) {
        removed.push(given.state);
      },
    });
    const flow = await flowOf(service);
    await flow.provision("i1");
    await flow.advance();
    expect((await flow.lastOperation("i1")).body).toMatchObject({
      state: "failed",
      description: `provision returned a state that its schema refuses: ${missing}`,
    });
    await flow.deprovision("i1");
    await flow.advance();
    expect(removed).toEqual([{ port: 5432 }]);
  });

  test("is no matter if all of it was saved", async () => {
    const service = untyped({
      state,
      provision: (operation: Work) => operation.saveState({ host: "h" }),
      bind: async (_operation: Work, given: { state: object }) => ({ credentials: { ...given.state } }),
    });
    const flow = await flowOf(service);
    expect((await flow.provision("i1", { acceptsIncomplete: false })).status).toBe(201);
    const { body } = await flow.bind("i1", "b1", { acceptsIncomplete: false });
    expect(body).toEqual({ credentials: { host: "h" } });
  });

  test("fails an update that breaks it, and the instance is as it was", async () => {
    const service = untyped({
      planUpdateable: true,
      state,
      provision: async () => ({ state: { host: "h" } }),
      update: (operation: Work) => operation.saveState({ host: 7 }),
      bind: async () => ({ credentials: {} }),
    });
    const flow = await flowOf(service);
    await flow.provision("i1", { acceptsIncomplete: false });
    const { status, body } = await flow.update("i1", { acceptsIncomplete: false, parameters: { a: 1 } });
    expect(status).toBe(500);
    expect(body.description).toBe(
      "update returned no state, and its schema refuses what is kept: the state of database.host must be string",
    );
    expect((await flow.fetch("i1")).status).toBe(200);
  });

  test("fails a bind whose own state lacks it", async () => {
    const service = untyped({ bindingState: state, bind: async () => ({ credentials: { a: 1 } }) });
    const flow = await flowOf(service);
    await flow.provision("i1", { acceptsIncomplete: false });
    const { status, body } = await flow.bind("i1", "b1", { acceptsIncomplete: false });
    expect(status).toBe(500);
    expect(body.description).toBe(
      "bind returned no state, and its schema refuses what is kept: the binding state of database must have required property 'host'",
    );
  });
});

describe("a bind that returns nothing", () => {
  test("is refused: an application would get a binding with which it can do nothing", async () => {
    const flow = await flowOf(untyped({ async bind() {} }));
    await flow.provision("i1", { acceptsIncomplete: false });
    const { status, body } = await flow.bind("i1", "b1", { acceptsIncomplete: false });
    expect(status).toBe(500);
    expect(body.description).toBe(
      "bind returned nothing: return { credentials }, or {} for a binding that has nothing to give",
    );
  });

  test("is meant if it returns {}", async () => {
    const flow = await flowOf(untyped({ bind: async () => ({}) }));
    await flow.provision("i1", { acceptsIncomplete: false });
    expect(await flow.bind("i1", "b1", { acceptsIncomplete: false })).toMatchObject({ status: 201, body: {} });
  });
});

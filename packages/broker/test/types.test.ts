import type { JsonObject } from "@osbert/protocol";
import { expect, expectTypeOf, test } from "vitest";
import { buildCatalog, defineService, type FromSchema, type Service, type ServiceDefinition } from "../src/index.js";

/**
 * What must compile, and what must not: `tsc -b` checks the expectations, a `@ts-expect-error` that is not needed is an error itself.
 * The services are only described, never run.
 */

const disk = {
  type: "object",
  properties: { diskGb: { type: "integer" }, fast: { type: "boolean" } },
  required: ["diskGb"],
} as const;

const plans = {
  shared: { id: "p-1", description: "shared" },
  dedicated: {
    id: "p-2",
    description: "dedicated",
    provision: disk,
    update: { type: "object", properties: { diskGb: { type: "integer" } } },
    bind: { type: "object", properties: { role: { enum: ["reader", "writer"] } }, required: ["role"] },
  },
} as const;

const state = {
  type: "object",
  properties: { host: { type: "string" }, port: { type: "integer" } },
  required: ["host"],
} as const;

const bindingState = { type: "object", properties: { user: { type: "string" } }, required: ["user"] } as const;

const base = { id: "s-1", name: "database", description: "A database", plans };

test("a schema gives its type", () => {
  expectTypeOf<FromSchema<typeof disk>>().toEqualTypeOf<{ readonly diskGb: number; readonly fast?: boolean }>();
  expectTypeOf<FromSchema<{ type: "array"; items: { type: "string" } }>>().toEqualTypeOf<readonly string[]>();
  expectTypeOf<FromSchema<{ enum: readonly ["a", "b"] }>>().toEqualTypeOf<"a" | "b">();
  expectTypeOf<FromSchema<{ const: 7 }>>().toEqualTypeOf<7>();
  expectTypeOf<FromSchema<{ type: readonly ["string", "null"] }>>().toEqualTypeOf<string | null>();
  expectTypeOf<FromSchema<{ anyOf: readonly [{ type: "string" }, { type: "number" }] }>>().toEqualTypeOf<
    string | number
  >();
  expectTypeOf<FromSchema<{ type: "object"; additionalProperties: { type: "integer" } }>>().toEqualTypeOf<{
    readonly [name: string]: number;
  }>();
  expectTypeOf<FromSchema<{ type: "object" }>>().toEqualTypeOf<JsonObject>();
  type Both = FromSchema<{
    allOf: readonly [
      { type: "object"; properties: { a: { type: "string" } }; required: readonly ["a"] },
      { type: "object"; properties: { b: { type: "number" } } },
    ];
  }>;
  expectTypeOf<Both>().toEqualTypeOf<{ readonly a: string; readonly b?: number }>();
});

test("the plan narrows the parameters", () => {
  const service = defineService({
    ...base,
    async provision(_operation, input) {
      expectTypeOf(input.plan).toEqualTypeOf<"shared" | "dedicated">();
      if (input.plan === "dedicated") {
        expectTypeOf(input.parameters).toEqualTypeOf<{ readonly diskGb: number; readonly fast?: boolean }>();
        // @ts-expect-error there is no such parameter
        void input.parameters.memory;
        // @ts-expect-error it may be missing
        input.parameters.fast.valueOf();
      } else {
        expectTypeOf(input.parameters).toEqualTypeOf<JsonObject>();
      }
      // @ts-expect-error there is no such plan
      if (input.plan === "huge") return;
    },
    async update(_operation, { plan, parameters, previous }) {
      if (plan === "dedicated") expectTypeOf(parameters).toEqualTypeOf<{ readonly diskGb?: number }>();
      expectTypeOf(previous.plan).toEqualTypeOf<"shared" | "dedicated">();
      // @ts-expect-error there is no such plan
      void (previous.plan === "huge");
    },
    async bind(_operation, { plan, parameters }) {
      if (plan === "dedicated") expectTypeOf(parameters.role).toEqualTypeOf<"reader" | "writer">();
      // @ts-expect-error it is one of two
      if (plan === "dedicated") void (parameters.role === "king");
      return {};
    },
  });
  expect(buildCatalog([service]).services.size).toBe(1);
});

test("the state that provision returns reaches bind, update, unbind and deprovision", () => {
  const service = defineService({
    ...base,
    state,
    bindingState,
    async provision(operation, { partial }) {
      expectTypeOf(partial?.host).toEqualTypeOf<string | undefined>();
      await operation.saveState({ port: 5432 });
      // @ts-expect-error there is no such state
      await operation.saveState({ hots: "h" });
      // @ts-expect-error it is a number
      await operation.saveState({ port: "5432" });
      return { state: { host: "h", port: 5432 } };
    },
    async update(_operation, given) {
      expectTypeOf(given.state).toEqualTypeOf<{ readonly host: string; readonly port?: number }>();
      return { state: { host: given.state.host } };
    },
    async bind(operation, given) {
      expectTypeOf(given.state.host).toEqualTypeOf<string>();
      expectTypeOf(given.predecessor?.state?.user).toEqualTypeOf<string | undefined>();
      await operation.saveState({ user: "u" });
      return { credentials: { host: given.state.host }, state: { user: "u" } };
    },
    async unbind(_operation, given) {
      expectTypeOf(given.bindingState?.user).toEqualTypeOf<string | undefined>();
      // @ts-expect-error it may be missing: a bind that failed leaves none
      void given.bindingState.user;
      // @ts-expect-error it may be partial
      given.state?.host.length;
    },
    async deprovision(_operation, given) {
      expectTypeOf(given.state?.host).toEqualTypeOf<string | undefined>();
      expectTypeOf(given.steps.get("a step")).not.toBeAny();
      // @ts-expect-error it may be missing: it also runs after a provision that failed
      void given.state.host;
    },
  });
  expect(buildCatalog([service]).services.size).toBe(1);
});

test("wrong code does not compile", () => {
  defineService({
    ...base,
    state,
    // @ts-expect-error the state lacks its host
    async provision() {
      return { state: { port: 1 } };
    },
  });
  defineService({
    ...base,
    state,
    // @ts-expect-error the host is a text
    async provision() {
      return { state: { host: 7 } };
    },
  });
  defineService({
    ...base,
    bindingState,
    // @ts-expect-error the binding's state is another one
    async bind() {
      return { state: { host: "h" } };
    },
  });
  defineService({
    ...base,
    // @ts-expect-error credentials are an object
    async bind() {
      return { credentials: "secret" };
    },
  });
  defineService({
    ...base,
    // @ts-expect-error a dashboard is a text
    async provision() {
      return { dashboardUrl: 7 };
    },
  });
  defineService({
    ...base,
    // @ts-expect-error what is known at once is said at once
    prepare: async () => ({ dashboardUrl: "https://x" }),
  });
  // @ts-expect-error a plan has an id
  defineService({ ...base, plans: { shared: { description: "x" } } });
  // @ts-expect-error there is no such permission
  defineService({ ...base, requires: ["root"] });
  // @ts-expect-error there is no such verb
  defineService({ ...base, async: { provide: "never" } });
  // @ts-expect-error there is no such mode
  defineService({ ...base, async: { provision: "always" } });
  // @ts-expect-error a service has plans
  defineService({ id: "s", name: "n", description: "d" });
});

test("where the state requires something, provision returns it; where it requires nothing, it may return nothing", () => {
  defineService({
    ...base,
    state,
    // @ts-expect-error the host is required
    async provision() {},
  });
  defineService({
    ...base,
    state,
    // @ts-expect-error the host is required
    async provision(operation) {
      await operation.step("create", () => "h");
      return { dashboardUrl: "https://example.com" };
    },
    // What is there stays.
    async update() {},
  });
  defineService({
    ...base,
    bindingState,
    // @ts-expect-error the user is required
    async bind() {
      return { credentials: {} };
    },
  });
  const optional = { type: "object", properties: { host: { type: "string" } } } as const;
  defineService({ ...base, state: optional, async provision() {} });
  defineService({ ...base, state: optional, bindingState: optional, bind: async () => ({ credentials: {} }) });
  defineService({ ...base, async provision() {} });
  class Database implements ServiceDefinition<typeof plans, typeof state> {
    readonly id = "s-1";
    readonly name = "database";
    readonly description = "A database";
    readonly plans = plans;
    readonly state = state;
    // @ts-expect-error the host is required
    async provision() {}
    async update() {}
  }
  expect(buildCatalog([new Database()]).services.size).toBe(1);
});

test("a bind returns something, if only {}", () => {
  defineService({
    ...base,
    // @ts-expect-error an application would get a binding with which it can do nothing
    async bind() {},
  });
  defineService({ ...base, bind: async () => ({}) });
});

test("a property of a plan that is misspelt does not compile", () => {
  const only = { id: "p-1", description: "The only one" } as const;
  // @ts-expect-error it is called free
  defineService({ ...base, plans: { only: { ...only, fre: true } } });
  defineService({
    ...base,
    plans: {
      one: { ...only, free: true },
      // @ts-expect-error it is called bindable
      other: { id: "p-2", description: "The other one", bindabel: false },
    },
  });
  // @ts-expect-error it is called planUpdateable
  defineService({ ...base, planUpdatable: true });
  const misspelt = { only: { ...only, metdata: {} } } as const;
  class Database implements ServiceDefinition<typeof misspelt> {
    readonly id = "s-1";
    readonly name = "database";
    readonly description = "A database";
    // @ts-expect-error it is called metadata
    readonly plans = misspelt;
  }
  expect(buildCatalog([new Database()]).services.size).toBe(1);
});

test("a step gives what JSON makes of its result, and a result that JSON cannot keep does not compile", () => {
  defineService({
    ...base,
    async provision(operation) {
      expectTypeOf(await operation.step("text", ({ idempotencyKey }) => idempotencyKey)).toEqualTypeOf<string>();
      expectTypeOf(await operation.step("date", async () => ({ at: new Date() }))).toEqualTypeOf<{ at: string }>();
      expectTypeOf(await operation.step("nothing", () => {})).toEqualTypeOf<void>();
      // @ts-expect-error it would come back as {}
      await operation.step("map", () => new Map([["a", 1]]));
      // @ts-expect-error it cannot be written
      await operation.step("bigint", () => ({ size: 1n }));
    },
    deprovision: (operation) => operation.step("nothing", async () => {}),
  });
});

test("a service is a service, whatever its types were", () => {
  const typed = defineService({ ...base, state, provision: async () => ({ state: { host: "h" } }) });
  expectTypeOf(typed).toEqualTypeOf<Service>();
});

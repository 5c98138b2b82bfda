import { expect, onTestFinished } from "vitest";
import { brokerServer } from "../src/http/broker-server.js";
import {
  createHandler,
  fetchHandler,
  type Handler,
  type HandlerOptions,
  type WireRequest,
  type WireResponse,
} from "../src/http/index.js";
import type { Broker, Schema, Work } from "../src/index.js";
import { defineService, type Service, type ServiceDefinition } from "../src/index.js";
import {
  type Ask,
  type TestAnswer,
  type TestBroker,
  type TestBrokerOptions,
  testBroker,
} from "../src/testing/index.js";

/** What a function does instead of ending well. It may return what the function is to return, throw, or never end. */
export type Behaviour = (work: Work) => Promise<unknown> | unknown;

/** A service whose functions do what the test says, and note what they did. */
export interface Lab {
  readonly service: Service;
  /** What was done, in order: "provision i1", "unbind b1"… */
  readonly done: string[];
  readonly behave: Partial<Record<"provision" | "update" | "deprovision" | "bind" | "unbind", Behaviour>>;
}

export const ids = { service: "svc-1", small: "plan-small", large: "plan-large", sealed: "plan-sealed" };

const sizeSchema = {
  type: "object",
  properties: { size: { type: "integer", minimum: 1 }, name: { type: "string", pattern: "^[a-z]+$" } },
  additionalProperties: false,
} as const satisfies Schema;

export const plans = {
  small: {
    id: ids.small,
    description: "The small one",
    bindingRotatable: true,
    maintenanceInfo: { version: "1.2.3" },
    provision: sizeSchema,
    update: sizeSchema,
    bind: { type: "object", properties: { role: { enum: ["reader", "writer"] } }, additionalProperties: false },
  },
  large: { id: ids.large, description: "The large one" },
  sealed: { id: ids.sealed, description: "Never bound, never changed", bindable: false, planUpdateable: false },
} as const;

export function lab(definition: Partial<ServiceDefinition> = {}): Lab {
  const done: string[] = [];
  const behave: Lab["behave"] = {};
  const service = defineService({
    id: ids.service,
    name: "lab",
    description: "Does what a test says",
    planUpdateable: true,
    plans,
    async provision(operation, { instance }) {
      await operation.step("create", () => void done.push(`provision ${instance.id}`));
      return (
        ((await behave.provision?.(operation)) as object | undefined) ?? { state: { host: `host-${instance.id}` } }
      );
    },
    async update(operation, { instance, plan, parameters }) {
      await operation.step(
        "change",
        () => void done.push(`update ${instance.id} ${plan} ${JSON.stringify(parameters)}`),
      );
      return (await behave.update?.(operation)) as object | undefined;
    },
    async deprovision(operation, { instance, steps }) {
      await operation.step(
        "remove",
        () => void done.push(`deprovision ${instance.id}${steps.size > 0 ? ` undoing ${[...steps.keys()]}` : ""}`),
      );
      await behave.deprovision?.(operation);
    },
    async bind(operation, { binding, state, parameters, predecessor }) {
      await operation.step(
        "grant",
        () => void done.push(`bind ${binding.id}${predecessor === null ? "" : ` after ${predecessor.id}`}`),
      );
      const given = (await behave.bind?.(operation)) as object | undefined;
      return given ?? { credentials: { user: binding.id, ...state, ...parameters }, state: { user: binding.id } };
    },
    async unbind(operation, { binding, bindingState, steps }) {
      await operation.step("revoke", () => {
        const undoing = steps.size > 0 ? ` undoing ${[...steps.keys()]}` : "";
        done.push(`unbind ${binding.id} ${JSON.stringify(bindingState ?? null)}${undoing}`);
      });
      await behave.unbind?.(operation);
    },
    ...(definition as object),
  });
  return { service, done, behave };
}

/** Never ends by itself, and does not listen when it is told to: it is given up ten seconds later. */
export function hang(): Promise<never> {
  return new Promise(() => undefined);
}

/** Ends when it is told to stop. */
export function untilStopped({ signal }: Work): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener("abort", () => reject(new Error("told to stop")), { once: true }),
  );
}

/** Holds everyone who waits until it is opened. */
export function gate(): { readonly wait: () => Promise<void>; readonly open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { wait: () => opened, open };
}

/** Both adapters must answer alike: every test of the wire runs on each. */
export const adapters: Readonly<Record<string, (broker: Broker, options: HandlerOptions) => Handler>> = {
  fastify: (broker, options) => {
    const app = brokerServer({ ...options, broker });
    return async (request) => {
      const { method, url, body } = request;
      const answer = await app.inject({
        method: method as "GET",
        url,
        headers: given(request),
        payload: Buffer.from(body as Uint8Array),
      });
      const headers = Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [name, String(value)]));
      return { status: answer.statusCode, headers, body: answer.body } satisfies WireResponse;
    };
  },
  fetch: (broker, options) => {
    const handle = fetchHandler(broker, options);
    return async (request) => {
      const { method, url, body } = request;
      const bytes = Buffer.from(body as Uint8Array);
      const hasBody = method !== "GET" && method !== "HEAD" && bytes.byteLength > 0;
      const headers = given(request);
      const answer = await handle(
        new Request(`http://broker.example${url}`, { method, headers, ...(hasBody && { body: bytes }) }),
      );
      return { status: answer.status, headers: Object.fromEntries(answer.headers), body: await answer.text() };
    };
  },
};

export const wires = Object.keys(adapters);

const sent = [
  "authorization",
  "content-encoding",
  "content-type",
  "if-none-match",
  "x-broker-api-version",
  "x-broker-api-originating-identity",
  "x-broker-api-request-identity",
];

function given(request: Pick<WireRequest, "header">): Record<string, string> {
  return Object.fromEntries(
    sent.flatMap((name) => {
      const value = request.header(name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** A broker with that service, spoken to through that adapter, for one test. */
export async function flowOn(
  wire: string,
  { service }: Pick<Lab, "service">,
  options: Partial<TestBrokerOptions> = {},
): Promise<TestBroker> {
  const flow = await testBroker({
    stderr: "nothing",
    services: [service],
    wire: adapters[wire] ?? createHandler,
    ...options,
  });
  onTestFinished(() => flow.stop());
  return flow;
}

/** Provisions an instance to its end. */
export async function ready(flow: TestBroker, instance: string, ask: Ask = {}): Promise<TestAnswer> {
  const answer = await flow.provision(instance, ask);
  expect(answer.status, JSON.stringify(answer.body)).toBe(202);
  await flow.advance();
  expect((await flow.lastOperation(instance)).body).toMatchObject({ state: "succeeded" });
  return answer;
}

/** Binds an instance, and waits for it. */
export async function bound(flow: TestBroker, instance: string, binding: string, ask: Ask = {}): Promise<TestAnswer> {
  const answer = await flow.bind(instance, binding, { acceptsIncomplete: false, ...ask });
  expect(answer.status, JSON.stringify(answer.body)).toBe(201);
  return answer;
}

/** All that the journal holds, to see whether anything has changed. */
export async function everything({ broker }: TestBroker): Promise<unknown> {
  const { journal } = broker;
  const { items } = await journal.find({ limit: 1_000 });
  return Promise.all(
    items.map(async ({ running: _, ...resource }) => ({
      ...resource,
      parts: (await journal.parts(resource.key, "", { limit: 1_000 })).items,
      entries: await journal.entries(resource.key, { limit: 1_000 }),
    })),
  );
}

/** Does something that must leave no trace. */
export async function unchanged<T>(flow: TestBroker, act: () => Promise<T>): Promise<T> {
  await flow.advance();
  const before = await everything(flow);
  const result = await act();
  await flow.advance();
  expect(await everything(flow)).toEqual(before);
  return result;
}

/** Expects an error in the form that every error has: a status, and a description that a person can use. */
export function expectRefusal({ status, body }: TestAnswer, expected: number, error?: string): string {
  expect(status, JSON.stringify(body)).toBe(expected);
  expect(body.description).toEqual(expect.stringMatching(/\S/));
  if (error !== undefined) expect(body.error).toBe(error);
  return body.description as string;
}

export const instancePath = (instance: string): string => `/v2/service_instances/${encodeURIComponent(instance)}`;

export const bindingPath = (instance: string, binding: string): string =>
  `${instancePath(instance)}/service_bindings/${encodeURIComponent(binding)}`;

/** A body that provisions, whole. */
export const provisionBody = {
  service_id: ids.service,
  plan_id: ids.small,
  organization_guid: "an-organization",
  space_guid: "a-space",
};

export const bindBody = { service_id: ids.service, plan_id: ids.small };

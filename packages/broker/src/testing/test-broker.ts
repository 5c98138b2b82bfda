import { memoryStore } from "@osbert/journal/memory";
import { type ManualClock, manualClock } from "@osbert/journal/testing";
import type { JsonObject, ServiceOffering, ServicePlan } from "@osbert/protocol";
import type { Handler } from "@osbert/server";
import { type Broker, type BrokerOptions, createBroker } from "../broker.js";
import { createHandler, type HandlerOptions } from "../http/broker-end.js";
import { ClockWatch } from "./clock-watch.js";

/** What `createBroker` takes, and what the wire does; all but `services` has a default. */
export interface TestBrokerOptions extends Omit<BrokerOptions, "store">, Partial<Omit<HandlerOptions, "credentials">> {
  /** Default: a memory store on the manual clock. */
  readonly store?: BrokerOptions["store"];
  /** How requests reach the broker. Default: straight into the handler that every adapter uses. */
  readonly wire?: (broker: Broker, options: HandlerOptions) => Handler;
}

/** What the broker answered. */
export interface TestAnswer {
  /** The HTTP status. */
  readonly status: number;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Read as JSON; `undefined` if it is empty. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies as they like.
  readonly body: any;
}

/** What a request is about, where the defaults will not do. */
export interface Ask {
  /** Names, not ids. Default: the first service and its first plan. */
  readonly service?: string;
  /** The plan's name. */
  readonly plan?: string;
  /** Of the service or binding. */
  readonly parameters?: JsonObject;
  /** Fields of the body (or the query of a delete) beside those that are filled in. */
  readonly with?: JsonObject;
  /** Default true. */
  readonly acceptsIncomplete?: boolean;
  /** Beside the version of the API, which is sent anyway. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A broker on a memory store and a clock that the test moves, spoken to without sockets. */
export interface TestBroker {
  /** The broker itself. */
  readonly broker: Broker;
  /** The clock that `advance` moves. */
  readonly clock: ManualClock;
  /** Any request, as a platform would send it. */
  request(
    method: string,
    path: string,
    options?: {
      /** An object, or a text or bytes that are sent as they are. */
      readonly body?: unknown;
      readonly headers?: Readonly<Record<string, string>>;
    },
  ): Promise<TestAnswer>;
  /** Asks for an instance. */
  provision(instance: string, ask?: Ask): Promise<TestAnswer>;
  /** Asks for a change of an instance. Without `plan` it keeps its own. */
  update(instance: string, ask?: Ask): Promise<TestAnswer>;
  /** Asks for the end of an instance. */
  deprovision(instance: string, ask?: Ask): Promise<TestAnswer>;
  /** Asks for a binding of an instance. */
  bind(instance: string, binding: string, ask?: Ask): Promise<TestAnswer>;
  /** Asks for the end of a binding. */
  unbind(instance: string, binding: string, ask?: Ask): Promise<TestAnswer>;
  /** What the platform is told of an instance or a binding. */
  fetch(instance: string, binding?: string): Promise<TestAnswer>;
  /** How far the last operation is, or the one that is named. */
  lastOperation(
    instance: string,
    options?: { readonly binding?: string; readonly operation?: string },
  ): Promise<TestAnswer>;
  /** Lets everything run that waits for nothing but its turn; with a time, also what is due until then. */
  advance(ms?: number): Promise<void>;
  /** Ends the broker, whatever it does. */
  stop(): Promise<void>;
}

/** Starts a broker for a test of an author's own services. */
export async function testBroker(options: TestBrokerOptions): Promise<TestBroker> {
  const clock = manualClock();
  const store = options.store ?? memoryStore({ clock: clock.wallMs });
  const watch: ClockWatch = new ClockWatch({ running: () => broker.running, now: () => broker.journal.now() });
  const { observe = [] } = options;
  const broker = createBroker({
    stderr: "bugs",
    ...options,
    observe: [(event) => watch.observe(event), ...(typeof observe === "function" ? [observe] : observe)],
    store,
    journal: { clock, ...options.journal },
  });
  await broker.start();
  const handle = (options.wire ?? createHandler)(broker, { ...options, credentials: "none" });

  const answerTo: TestBroker["request"] = async (method, path, { body, headers = {} } = {}) => {
    const all: Record<string, string> = { "x-broker-api-version": "2.17" };
    for (const [name, value] of Object.entries(headers)) all[name.toLowerCase()] = value;
    const bytes = body instanceof Uint8Array ? body : new TextEncoder().encode(toText(body));
    const header = (name: string) => all[name.toLowerCase()];
    const answer = await handle({ method, url: path, header, body: bytes });
    return {
      status: answer.status,
      headers: answer.headers,
      body: answer.body.length === 0 ? undefined : JSON.parse(Buffer.from(answer.body).toString()),
    };
  };

  const request: TestBroker["request"] = (method, path, given) => {
    const answer = answerTo(method, path, given);
    const instance = /\/v2\/service_instances\/([^/?]+)/.exec(path)?.[1];
    // On a clock of the test's own, time may pass by itself.
    const mayHang = method !== "GET" && instance !== undefined && options.journal?.clock === undefined;
    return mayHang ? watch.answered(decoded(instance), answer) : answer;
  };

  const find = ({ service, plan }: Ask): { readonly offering: ServiceOffering; readonly planned: ServicePlan } => {
    const offerings = [...broker.catalog.services.values()].map(({ offering }) => offering);
    const offering = service === undefined ? offerings[0] : offerings.find(({ name }) => name === service);
    const planned = plan === undefined ? offering?.plans[0] : offering?.plans.find(({ name }) => name === plan);
    if (offering === undefined || planned === undefined)
      throw new Error(`there is no plan ${plan ?? ""} of a service ${service ?? ""}`);
    return { offering, planned };
  };

  const put = (path: string, method: string, ask: Ask, body: JsonObject) =>
    request(method, `${path}${incomplete(ask, "?")}`, {
      body: { ...body, ...(ask.parameters && { parameters: ask.parameters }), ...ask.with },
      ...(ask.headers && { headers: ask.headers }),
    });

  const remove = (path: string, ask: Ask) => {
    const { offering, planned } = find(ask);
    const query = new URLSearchParams({
      service_id: offering.id,
      plan_id: planned.id,
      ...(ask.with as Record<string, string>),
    });
    return request(
      "DELETE",
      `${path}?${query}${incomplete(ask, "&")}`,
      ask.headers === undefined ? {} : { headers: ask.headers },
    );
  };

  return {
    broker,
    clock,
    request,
    provision(instance, ask = {}) {
      const { offering, planned } = find(ask);
      return put(instancePath(instance), "PUT", ask, {
        service_id: offering.id,
        plan_id: planned.id,
        organization_guid: "an-organization",
        space_guid: "a-space",
      });
    },
    update(instance, ask = {}) {
      const { offering, planned } = find(ask);
      const plan = ask.plan === undefined ? {} : { plan_id: planned.id };
      return put(instancePath(instance), "PATCH", ask, { service_id: offering.id, ...plan });
    },
    deprovision: (instance, ask = {}) => remove(instancePath(instance), ask),
    bind(instance, binding, ask = {}) {
      const { offering, planned } = find(ask);
      return put(bindingPath(instance, binding), "PUT", ask, { service_id: offering.id, plan_id: planned.id });
    },
    unbind: (instance, binding, ask = {}) => remove(bindingPath(instance, binding), ask),
    fetch: (instance, binding) =>
      request("GET", binding === undefined ? instancePath(instance) : bindingPath(instance, binding)),
    lastOperation(instance, { binding, operation } = {}) {
      const path = binding === undefined ? instancePath(instance) : bindingPath(instance, binding);
      return request(
        "GET",
        `${path}/last_operation${operation === undefined ? "" : `?operation=${encodeURIComponent(operation)}`}`,
      );
    },
    advance: (ms = 0) => watch.advancing(() => clock.advance(ms)),
    async stop() {
      watch.end();
      const stopped = broker.stop({ drainMs: 0 });
      // A function that hangs is given up after its time, which passes only if someone moves the clock.
      await clock.advance(stopWithinMs);
      await stopped;
    },
  };
}

const stopWithinMs = 60_000;

function toText(body: unknown): string {
  return body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body);
}

/** Tests send anything, also what cannot be decoded. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function instancePath(instance: string): string {
  return `/v2/service_instances/${encodeURIComponent(instance)}`;
}

function bindingPath(instance: string, binding: string): string {
  return `${instancePath(instance)}/service_bindings/${encodeURIComponent(binding)}`;
}

function incomplete({ acceptsIncomplete = true }: Ask, separator: string): string {
  return acceptsIncomplete ? `${separator}accepts_incomplete=true` : "";
}

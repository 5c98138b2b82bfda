import { canonicalJson, isJsonObject, type Json, type JsonObject, longestOperation } from "@osbert/protocol";
import type { MisbehavingCall, Misbehaviour, SlowOperation } from "./misbehaviour.js";

/** A request as far as a broker understands it. */
export interface Asked {
  readonly call: MisbehavingCall;
  readonly instance: string;
  readonly binding: string;
  readonly query: URLSearchParams;
  readonly body: JsonObject;
}

export interface GoodAnswer {
  readonly status: number;
  readonly body: Json;
}

export type KeptState = "creating" | "ready" | "changing" | "deleting" | "failed";

/** What the broker has, as it tells whoever asks for it. */
export interface KeptInstance {
  readonly id: string;
  readonly service_id: string;
  readonly plan_id: string;
  readonly parameters: JsonObject;
  readonly state: KeptState;
  readonly bindings: readonly KeptBinding[];
}

export interface KeptBinding {
  readonly id: string;
  readonly state: KeptState;
  readonly parameters: JsonObject;
}

/** One thing that has a life of its own: an instance, or a binding. */
interface Thing {
  readonly id: string;
  /** What it was asked for with: an identical request is answered as the first. */
  readonly asked: string;
  service: string;
  plan: string;
  parameters: JsonObject;
  state: KeptState;
  operation: Operation | null;
  readonly bindings: Map<string, Thing>;
}

interface Operation {
  readonly key: Json | undefined;
  readonly slow: SlowOperation;
  /** The request that began it, so that the same one is told the same. */
  readonly asked: string;
  readonly endsAt: number | null;
  polls: number;
  readonly succeed: () => void;
  readonly fail: () => void;
  ended: "succeeded" | "failed" | null;
}

/**
 * A good broker without a wire: it keeps instances and bindings in memory, and does and answers what the specification says. What spoils its
 * answers stands above it.
 */
export class KeptServices {
  readonly #now: () => number;
  readonly #instances = new Map<string, Thing>();
  /** What was deleted over a while: polls of it are told that it is gone. */
  readonly #gone = new Set<string>();
  #operations = 0;
  #created = 0;
  #deleted = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** How polls of the operation that is under way are to be answered. */
  polledAs(asked: Asked): Misbehaviour | undefined {
    const operation = this.#thing(asked)?.operation;
    return operation?.ended === null ? operation.slow.polled : undefined;
  }

  planOf(asked: Asked): string | undefined {
    return this.#instances.get(asked.instance)?.plan;
  }

  /** `slow`: what is new is not done at once. */
  answer(asked: Asked, slow: SlowOperation | undefined): GoodAnswer {
    this.settle();
    switch (asked.call) {
      case "provision":
        return this.#create(asked, this.#instances, slow);
      case "update":
        return this.#update(asked, slow);
      case "deprovision":
      case "unbind":
        return this.#remove(asked, slow);
      case "bind":
        return this.#bind(asked, slow);
      case "fetch":
      case "fetch-binding":
        return this.#fetch(asked);
      case "poll":
      case "poll-binding":
        return this.#poll(asked);
      case "catalog":
        throw new Error("the catalog is not kept here");
    }
  }

  state(): { readonly instances: readonly KeptInstance[]; readonly created: number; readonly deleted: number } {
    this.settle();
    const instances = [...this.#instances.values()].map((one) => ({
      id: one.id,
      service_id: one.service,
      plan_id: one.plan,
      parameters: one.parameters,
      state: one.state,
      bindings: [...one.bindings.values()].map(({ id, state, parameters }) => ({ id, state, parameters })),
    }));
    return { instances, created: this.#created, deleted: this.#deleted };
  }

  /** Ends what ends by itself. */
  settle(): void {
    for (const instance of this.#instances.values())
      for (const thing of [instance, ...instance.bindings.values()]) {
        const { operation } = thing;
        if (operation?.ended === null && operation.endsAt !== null && operation.endsAt <= this.#now()) end(operation);
      }
  }

  /** As after a disaster: nothing is there, and nothing of it is known. */
  forget(): void {
    this.#instances.clear();
    this.#gone.clear();
  }

  #thing({ instance, binding }: Asked): Thing | undefined {
    const found = this.#instances.get(instance);
    return binding === "" ? found : found?.bindings.get(binding);
  }

  #create(asked: Asked, among: Map<string, Thing>, slow: SlowOperation | undefined): GoodAnswer {
    const { service_id, plan_id, parameters } = asked.body;
    if (typeof service_id !== "string" || typeof plan_id !== "string")
      return refuse(400, "service_id and plan_id must be texts");
    const id = asked.binding === "" ? asked.instance : asked.binding;
    const request = canonicalJson({ service_id, plan_id, parameters: parameters ?? {} });
    const there = among.get(id);
    if (there !== undefined) {
      if (there.asked !== request || there.state === "failed" || there.state === "deleting")
        return refuse(409, "something else has this id");
      return there.state === "creating" ? accepted(there.operation) : { status: 200, body: createdBody(asked) };
    }
    if (slow !== undefined && asked.query.get("accepts_incomplete") !== "true")
      return refuse(422, "this takes a while", "AsyncRequired");
    this.#created++;
    const thing: Thing = {
      id,
      asked: request,
      service: service_id,
      plan: plan_id,
      parameters: isJsonObject(parameters) ? parameters : {},
      state: "creating",
      operation: null,
      bindings: new Map(),
    };
    among.set(id, thing);
    this.#gone.delete(path(asked));
    return this.#begin(thing, request, slow, {
      succeed: () => {
        thing.state = "ready";
      },
      fail: () => {
        thing.state = "failed";
      },
      answer: { status: 201, body: createdBody(asked) },
    });
  }

  #bind(asked: Asked, slow: SlowOperation | undefined): GoodAnswer {
    const instance = this.#instances.get(asked.instance);
    if (instance === undefined) return refuse(404, "there is no such instance");
    if (instance.state !== "ready") return refuse(422, "the instance is busy", "ConcurrencyError");
    const { predecessor_binding_id } = asked.body;
    if (predecessor_binding_id === undefined) return this.#create(asked, instance.bindings, slow);
    const before = instance.bindings.get(String(predecessor_binding_id));
    if (before === undefined) return refuse(404, "there is no such predecessor");
    const body = { service_id: before.service, plan_id: before.plan, parameters: before.parameters };
    return this.#create({ ...asked, body }, instance.bindings, slow);
  }

  #update(asked: Asked, slow: SlowOperation | undefined): GoodAnswer {
    const instance = this.#instances.get(asked.instance);
    if (instance === undefined) return refuse(404, "there is no such instance");
    const request = canonicalJson(asked.body);
    if (instance.state === "changing" && instance.operation?.asked === request) return accepted(instance.operation);
    if (instance.state !== "ready") return refuse(422, "the instance is busy", "ConcurrencyError");
    if (slow !== undefined && asked.query.get("accepts_incomplete") !== "true")
      return refuse(422, "this takes a while", "AsyncRequired");
    const { plan_id, parameters } = asked.body;
    instance.state = "changing";
    return this.#begin(instance, request, slow, {
      succeed: () => {
        instance.state = "ready";
        if (typeof plan_id === "string") instance.plan = plan_id;
        if (isJsonObject(parameters)) instance.parameters = { ...instance.parameters, ...parameters };
      },
      fail: () => {
        instance.state = "ready";
      },
      answer: { status: 200, body: {} },
    });
  }

  #remove(asked: Asked, slow: SlowOperation | undefined): GoodAnswer {
    const thing = this.#thing(asked);
    if (thing === undefined) return { status: 410, body: {} };
    if (thing.state === "deleting") return accepted(thing.operation);
    if (thing.state === "changing") return refuse(422, "the instance is busy", "ConcurrencyError");
    if (thing.bindings.size > 0) return refuse(400, "the instance has bindings");
    if (slow !== undefined && asked.query.get("accepts_incomplete") !== "true")
      return refuse(422, "this takes a while", "AsyncRequired");
    const among = asked.binding === "" ? this.#instances : this.#instances.get(asked.instance)?.bindings;
    const before = thing.state === "creating" ? "failed" : thing.state;
    thing.state = "deleting";
    return this.#begin(thing, path(asked), slow, {
      succeed: () => {
        among?.delete(thing.id);
        this.#deleted++;
        this.#gone.add(path(asked));
      },
      fail: () => {
        thing.state = before;
      },
      answer: { status: 200, body: {} },
    });
  }

  #fetch(asked: Asked): GoodAnswer {
    const thing = this.#thing(asked);
    if (thing === undefined || thing.state === "creating") return refuse(404, "there is no such thing");
    if (thing.state === "changing") return refuse(422, "it is being changed", "ConcurrencyError");
    if (asked.call === "fetch-binding")
      return { status: 200, body: { ...createdBody(asked), parameters: thing.parameters } };
    const { service, plan, parameters } = thing;
    return { status: 200, body: { service_id: service, plan_id: plan, parameters } };
  }

  #poll(asked: Asked): GoodAnswer {
    const thing = this.#thing(asked);
    if (thing === undefined)
      return this.#gone.has(path(asked)) ? { status: 410, body: {} } : refuse(404, "there is no such thing");
    const { operation } = thing;
    if (operation === null) return refuse(400, "there is no operation");
    const key = asked.query.get("operation");
    if (key !== null && operation.key !== undefined && key !== String(operation.key))
      return refuse(400, "there is no such operation");
    if (operation.ended === null && operation.endsAt === null && operation.slow.polls !== "endless") {
      if (operation.polls >= (operation.slow.polls ?? 1)) end(operation);
      else operation.polls++;
    }
    // A poll that ends a delete is the last one that finds it.
    if (this.#thing(asked) === undefined) return { status: 200, body: { state: "succeeded" } };
    const { usable, repeatable, description } = operation.slow;
    const state = operation.ended ?? "in progress";
    return {
      status: 200,
      body: {
        state,
        description: description ?? `poll ${operation.polls}`,
        ...(state === "failed" && usable !== undefined && { instance_usable: usable }),
        ...(state === "failed" && repeatable !== undefined && { update_repeatable: repeatable }),
      },
    };
  }

  #begin(
    thing: Thing,
    asked: string,
    slow: SlowOperation | undefined,
    then: { readonly succeed: () => void; readonly fail: () => void; readonly answer: GoodAnswer },
  ): GoodAnswer {
    thing.operation = null;
    if (slow === undefined) {
      then.succeed();
      return then.answer;
    }
    thing.operation = {
      key: keyOf(slow, ++this.#operations),
      slow,
      asked,
      endsAt: slow.ms === undefined ? null : this.#now() + slow.ms,
      polls: 0,
      succeed: then.succeed,
      fail: then.fail,
      ended: null,
    };
    return accepted(thing.operation);
  }
}

function end(operation: Operation): void {
  operation.ended = operation.slow.end ?? "succeeded";
  if (operation.ended === "succeeded") operation.succeed();
  else operation.fail();
}

function keyOf({ key }: SlowOperation, number: number): Json | undefined {
  if (key === "none") return undefined;
  if (key === "number") return number;
  return key === "too-long" ? "x".repeat(longestOperation + 1) : `operation-${number}`;
}

function accepted(operation: Operation | null): GoodAnswer {
  return { status: 202, body: operation?.key === undefined ? {} : { operation: operation.key } };
}

/** Credentials that tell whose they are, so that a test sees when they went astray. */
function createdBody({ instance, binding }: Asked): JsonObject {
  return binding === ""
    ? { dashboard_url: `http://dashboard.example/${encodeURIComponent(instance)}` }
    : { credentials: { user: `user-of-${binding}`, password: `password-of-${binding}`, instance } };
}

function refuse(status: number, description: string, error?: string): GoodAnswer {
  return { status, body: { ...(error !== undefined && { error }), description } };
}

function path({ instance, binding }: Asked): string {
  return JSON.stringify([instance, binding]);
}

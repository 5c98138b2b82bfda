import { describe, expect, test } from "vitest";
import type { BindInput, DeprovisionInput, ProvisionInput, ServiceDefinition, Work } from "../src/index.js";
import { expectRefusal, flowOn, wires } from "./lab.js";

const plans = {
  small: { id: "p-1", description: "One bucket" },
  large: {
    id: "p-2",
    description: "Many buckets",
    provision: { type: "object", properties: { buckets: { type: "integer", maximum: 9 } }, required: ["buckets"] },
  },
} as const;

const state = { type: "object", properties: { bucket: { type: "string" } }, required: ["bucket"] } as const;

type Plans = typeof plans;
type State = typeof state;

/** A service as a class: with private fields, methods on its prototype, and what it needs handed to it. */
class Buckets implements ServiceDefinition<Plans, State, undefined> {
  readonly id = "s-1";
  readonly name = "buckets";
  readonly plans = plans;
  readonly state = state;
  readonly #made: Set<string>;

  constructor(made: Set<string>) {
    this.#made = made;
  }

  get description(): string {
    return `Buckets, ${this.#made.size} of them`;
  }

  async provision(work: Work<{ bucket: string }>, { instance, plan, parameters }: ProvisionInput<Plans, State>) {
    const count = plan === "large" ? parameters.buckets : 1;
    const bucket = await work.step("make", () => this.#make(instance.id, count));
    return { state: { bucket } };
  }

  async bind(_work: Work, { state: { bucket } }: BindInput<Plans, State, undefined>) {
    return { credentials: { bucket } };
  }

  async deprovision(_work: Work, { state: known }: DeprovisionInput<Plans, State>) {
    if (known?.bucket !== undefined) this.#made.delete(known.bucket);
  }

  #make(instance: string, count: number): string {
    const bucket = `${instance}-${count}`;
    this.#made.add(bucket);
    return bucket;
  }
}

describe.each(wires)("%s: a class as a service", (wire) => {
  test("an instance of a class is a service, and its methods keep their this", async () => {
    const made = new Set<string>();
    const flow = await flowOn(wire, { service: new Buckets(made) });
    const { body } = await flow.request("GET", "/v2/catalog");
    expect(body.services[0]).toMatchObject({ name: "buckets", bindable: true, description: "Buckets, 0 of them" });
    expectRefusal(await flow.provision("i1", { plan: "large", parameters: { buckets: 10 } }), 400);
    await flow.provision("i1", { plan: "large", parameters: { buckets: 3 }, acceptsIncomplete: false });
    expect(made).toEqual(new Set(["i1-3"]));
    const binding = await flow.bind("i1", "b1", { plan: "large", acceptsIncomplete: false });
    expect(binding.body).toEqual({ credentials: { bucket: "i1-3" } });
    await flow.unbind("i1", "b1", { plan: "large", acceptsIncomplete: false });
    expect((await flow.deprovision("i1", { plan: "large", acceptsIncomplete: false })).status).toBe(200);
    expect(made.size).toBe(0);
  });
});

import { BrokerError, type JsonObject } from "@osbert/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import { type AskFirst, Failed, type Judgement, type Refusal, type Service, type ServiceSource } from "../src/index.js";
import { testBroker } from "../src/testing/index.js";

const serviceId = "0c1f1f2e-6a54-4a4f-9d6b-3d3c1f0a1111";
const planId = "0c1f1f2e-6a54-4a4f-9d6b-3d3c1f0a2222";
const otherPlanId = "0c1f1f2e-6a54-4a4f-9d6b-3d3c1f0a3333";

interface Made {
  readonly provisioned: string[];
  readonly removed: string[];
}

function service({ provisioned, removed }: Made, more: Partial<Service> = {}): Service {
  return {
    id: serviceId,
    name: "database",
    description: "A database",
    bindable: false,
    planUpdateable: true,
    revision: "r1",
    plans: {
      small: {
        id: planId,
        description: "A small one",
        maintenanceInfo: { version: "1.0.0" },
        provision: { type: "object", properties: { size: { type: "integer" } }, additionalProperties: false },
      },
      large: { id: otherPlanId, description: "A large one" },
    },
    provision: async (_, { instance }) => void provisioned.push(instance.id),
    update: async () => undefined,
    deprovision: async (_, { instance }) => void removed.push(instance.id),
    ...more,
  } as Service;
}

/** A source that says of requests what the test says. */
async function start(
  options: { readonly isKnown?: boolean; readonly services?: (made: Made) => readonly Service[] } = {},
) {
  const made: Made = { provisioned: [], removed: [] };
  const gone: string[] = [];
  const services = (options.services ?? ((of) => [service(of)]))(made);
  const told = {
    provision: { kind: "allowed" } as Judgement | AskFirst,
    planChange: null as Refusal | null,
    accepted: null as Refusal | null,
    acceptedAt: [] as number[],
  };
  let known = options.isKnown ?? true;
  let changed: () => void = () => undefined;
  const source: ServiceSource = {
    get services() {
      return known ? services : undefined;
    },
    async open(ports) {
      changed = ports.changed;
    },
    resolve: async () => undefined,
    judge: {
      provision: () => told.provision,
      planChange: (_, from, to) => (from === to ? null : told.planChange),
      async accepted(_, __, at) {
        told.acceptedAt.push(at);
        return told.accepted;
      },
    },
    instanceGone: (id) => void gone.push(id),
    close: () => undefined,
  };
  const flow = await testBroker({ services: source, stderr: "nothing" });
  onTestFinished(() => flow.stop());
  const learn = () => {
    known = true;
    told.provision = { kind: "allowed" };
    changed();
  };
  const put = (instance: string, incomplete = true, more: object = {}) =>
    flow.request("PUT", `/v2/service_instances/${instance}${incomplete ? "?accepts_incomplete=true" : ""}`, {
      body: { service_id: serviceId, plan_id: planId, organization_guid: "o", space_guid: "s", ...more },
    });
  const remove = (instance: string) =>
    flow.request(
      "DELETE",
      `/v2/service_instances/${instance}?accepts_incomplete=true&service_id=${serviceId}&plan_id=${planId}`,
    );
  return { flow, made, gone, told, learn, put, remove };
}

const notYet: Judgement = {
  kind: "not known yet",
  why: "the source `hub` has not been read yet",
  waitMs: 60_000,
  retryAfterSeconds: 10,
};

describe("what nobody can say yet", () => {
  test("waits as an operation, and is a provision like any other once the catalog is known", async () => {
    const { flow, made, told, learn, put } = await start({ isKnown: false });
    told.provision = notYet;
    const first = await put("i1", true, { parameters: { size: 1 } });
    expect(first.status).toBe(202);
    await flow.advance(10_000);
    const waiting = await flow.lastOperation("i1");
    expect(waiting.body).toEqual({ state: "in progress", description: "waits for the catalog" });
    expect((await put("i1", true, { parameters: { size: 1 } })).body).toEqual(first.body);
    expect(made.provisioned).toEqual([]);
    learn();
    await flow.advance(10_000);
    expect((await flow.lastOperation("i1")).body).toEqual({ state: "succeeded" });
    expect(made.provisioned).toEqual(["i1"]);
    expect(told.acceptedAt).toHaveLength(1);
    expect((await put("i1", true, { parameters: { size: 1 } })).status).toBe(200);
    await flow.deprovision("i1");
    await flow.advance();
    expect(made.removed).toEqual(["i1"]);
  });

  test("is 503 with Retry-After for a platform that does not take 202", async () => {
    const { told, put, flow } = await start({ isKnown: false });
    told.provision = notYet;
    const answer = await put("i1", false);
    expect([answer.status, answer.headers["retry-after"]]).toEqual([503, "10"]);
    expect((await flow.fetch("i1")).status).toBe(404);
  });

  test("ends with the reason after its time, and leaves the id free", async () => {
    const { flow, made, told, learn, put } = await start({ isKnown: false });
    told.provision = notYet;
    await put("i1");
    await flow.advance(120_000);
    expect((await flow.lastOperation("i1")).body).toEqual({
      state: "failed",
      description: "the source `hub` has not been read yet; ask again later",
    });
    learn();
    expect((await put("i1", true, { parameters: { size: 2 } })).status).toBe(202);
    await flow.advance();
    expect(made.provisioned).toEqual(["i1"]);
  });

  test.each([
    ["parameters that the schema refuses", { parameters: { size: "x" } }, /size/],
    ["an old maintenance_info", { maintenance_info: { version: "0.9.0" } }, /read the catalog again/],
    ["a plan that there is not", { plan_id: "none" }, /plan_id is not a plan/],
  ])("is held to the catalog in full once that is known: %s", async (_, more, words) => {
    const { flow, made, told, learn, put } = await start({ isKnown: false });
    told.provision = notYet;
    expect((await put("i1", true, more)).status).toBe(202);
    learn();
    await flow.advance(10_000);
    expect((await flow.lastOperation("i1")).body).toMatchObject({
      state: "failed",
      description: expect.stringMatching(words),
    });
    expect(made.provisioned).toEqual([]);
  });

  test("asks the author's hook and prepare once the service is known", async () => {
    const asked: string[] = [];
    const { flow, told, learn, put } = await start({
      isKnown: false,
      services: (made) => [
        service(made, {
          hooks: {
            before: async ({ instance }) => {
              asked.push(instance.id);
              if (instance.id === "i2") throw new BrokerError("forbidden", "no more than one");
            },
          },
          prepare: () => ({ metadata: { labels: { a: "b" } } }),
        }),
      ],
    });
    told.provision = notYet;
    await put("i1");
    await put("i2");
    learn();
    await flow.advance(10_000);
    expect(asked.sort()).toEqual(["i1", "i2"]);
    expect((await flow.fetch("i1")).body.metadata).toEqual({ labels: { a: "b" } });
    expect((await flow.lastOperation("i2")).body).toEqual({ state: "failed", description: "no more than one" });
  });

  test("can be deleted while it waits, although nobody knows the service", async () => {
    const { flow, made, told, put, remove } = await start({ isKnown: false });
    told.provision = notYet;
    await put("i1");
    expect((await remove("i1")).status).toBe(202);
    await flow.advance(15_000);
    expect((await flow.lastOperation("i1")).body).toEqual({ state: "succeeded" });
    expect((await remove("i1")).status).toBe(410);
    expect(made).toEqual({ provisioned: [], removed: [] });
  });

  /** An instance whose provision has failed half-way, and what deprovisions of it are told. */
  async function halfMade(keeps: "a step" | "state") {
    const removals: unknown[] = [];
    const started = await start({
      services: (made) => [
        service(made, {
          async provision(work) {
            if (keeps === "a step") await work.step("create", async () => "d1");
            else await work.saveState({ database: "d1" });
            throw new Failed("half-way");
          },
          deprovision: async (_, { state, steps }) => void removals.push(state ?? Object.fromEntries(steps)),
        } as Partial<Service>),
      ],
    });
    await started.put("i1");
    await started.flow.advance();
    return { ...started, removals };
  }

  test.each([
    ["a step", { create: "d1" }],
    ["state", { database: "d1" }],
  ] as const)("is 503 for an instance that has failed: %s of it is still there to be undone", async (keeps, left) => {
    const { flow, told, learn, put, remove, removals } = await halfMade(keeps);
    told.provision = notYet;
    const again = await put("i1");
    expect([again.status, again.headers["retry-after"]]).toEqual([503, "10"]);
    expect((await flow.lastOperation("i1")).body).toEqual({ state: "failed", description: "half-way" });
    await remove("i1");
    await flow.advance(30_000);
    expect((await remove("i1")).status).toBe(410);
    expect(removals).toEqual([left]);
    // Nothing of it stands in the way of the next one.
    learn();
    expect((await put("i1")).status).toBe(202);
  });

  test.each([
    ["a step", { create: "d1" }],
    ["state", { database: "d1" }],
  ] as const)("an earlier version has let a failed one wait: %s of it is undone all the same", async (keeps, left) => {
    const { flow, remove, removals } = await halfMade(keeps);
    const data = { ...((await flow.broker.journal.read("/i1"))?.data as JsonObject), awaitsCatalog: 0 };
    const by = { actor: { type: "system", subject: "test" } } as const;
    await flow.broker.journal.transact("/i1", () => ({ result: null, change: { data } }), { by });
    await remove("i1");
    await flow.advance(30_000);
    expect((await remove("i1")).status).toBe(410);
    expect(removals).toEqual([left]);
  });
});

describe("what a source refuses", () => {
  test("is told with its code, and a request that was accepted before goes on", async () => {
    const { flow, told, put } = await start();
    await put("i1");
    told.provision = { kind: "refused", code: "service-retired", why: "it was withdrawn" };
    expect([200, 202]).toContain((await put("i1")).status);
    await flow.advance();
    expect((await put("i1")).status).toBe(200);
    const other = await put("i2");
    expect([other.status, other.body]).toEqual([400, { error: "ServiceRetired", description: "it was withdrawn" }]);
  });

  test("somebody else is asked only about what would begin", async () => {
    const { flow, told, put } = await start();
    let asked = 0;
    const ask = async (): Promise<Judgement> => {
      asked += 1;
      return asked === 1 ? { kind: "allowed" } : { kind: "refused", code: "service-retired", why: "it is gone" };
    };
    told.provision = { kind: "ask first", ask };
    expect((await put("i1")).status).toBe(202);
    await put("i1");
    await flow.advance();
    expect((await put("i1")).status).toBe(200);
    expect(asked).toBe(1);
    expect((await put("i2")).status).toBe(400);
  });

  test("a change of the plan is refused, one of parameters alone is not", async () => {
    const { flow, told, put } = await start();
    await put("i1");
    await flow.advance();
    told.planChange = { kind: "refused", code: "service-retired", why: "the plan has left" };
    const refused = await flow.update("i1", { plan: "large" });
    expect([refused.status, refused.body.error]).toEqual([400, "ServiceRetired"]);
    expect((await flow.update("i1", { parameters: { a: 1 } })).status).toBe(202);
  });

  test("an instance whose revision may be gone ends before anything was done for it", async () => {
    const { flow, made, told, put } = await start();
    told.accepted = { kind: "refused", code: "service-retired", why: "its revision is not kept any more" };
    await put("i1");
    await flow.advance();
    expect((await flow.lastOperation("i1")).body).toMatchObject({ state: "failed" });
    expect(made.provisioned).toEqual([]);
    told.accepted = null;
    expect((await put("i1")).status).toBe(202);
  });

  test("an instance whose revision was kept when it began goes on, whatever is said later", async () => {
    const { flow, told, put } = await start({
      services: (made) => [
        service(made, {
          provision: async (work) => {
            await work.sleep("boots", 60_000);
          },
        } as Partial<Service>),
      ],
    });
    await put("i1");
    await flow.advance();
    told.accepted = { kind: "refused", code: "service-retired", why: "its revision is not kept any more" };
    await flow.advance(60_000);
    expect((await flow.lastOperation("i1")).body).toEqual({ state: "succeeded" });
    expect(told.acceptedAt).toHaveLength(1);
    // The next one is asked about anew.
    await put("i2");
    await flow.advance();
    expect((await flow.lastOperation("i2")).body).toMatchObject({ state: "failed" });
  });
});

test("a source hears of an instance that is gone", async () => {
  const { flow, gone, put } = await start();
  await put("i1");
  await flow.advance();
  expect(gone).toEqual([]);
  await flow.deprovision("i1");
  await flow.advance();
  expect(gone).toEqual([serviceId]);
});

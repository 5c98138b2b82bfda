import { describe, expect, test } from "vitest";
import { BrokerError, Failed } from "../src/index.js";
import {
  adapters,
  bound,
  expectRefusal,
  flowOn,
  gate,
  hang,
  ids,
  instancePath,
  lab,
  provisionBody,
  ready,
  unchanged,
  wires,
} from "./lab.js";

const sync = { acceptsIncomplete: false };

const dashboards = {
  prepare: ({ instance }: { instance: { id: string } }) => ({
    dashboardUrl: `https://lab.example/${instance.id}`,
    metadata: { labels: { tier: "one" }, attributes: { version: "16" } },
  }),
} as never;

describe.each(wires)("%s: provision", (wire) => {
  test("PROV-01, PROV-27, ASYNC-09: an instance that is made by the request is a 201", async () => {
    const laboratory = lab(dashboards);
    const flow = await flowOn(wire, laboratory);
    const { status, body } = await flow.provision("i1", { ...sync, parameters: { size: 2 } });
    expect(status).toBe(201);
    expect(body.dashboard_url).toBe("https://lab.example/i1");
    expect(laboratory.done).toEqual(["provision i1"]);
    expect((await flow.fetch("i1")).body.parameters).toEqual({ size: 2 });
  });

  test("PROV-02, PROV-24: one that is being made is a 202 with an operation of few characters", async () => {
    const laboratory = lab();
    laboratory.behave.provision = hang;
    const flow = await flowOn(wire, laboratory);
    const { status, body } = await flow.provision("i1");
    expect(status).toBe(202);
    expect(typeof body.operation).toBe("string");
    expect(body.operation.length).toBeLessThanOrEqual(10_000);
  });

  test("PROV-03, B2: an identical request after the end is a 200 with the whole body", async () => {
    const laboratory = lab(dashboards);
    const flow = await flowOn(wire, laboratory);
    const first = await flow.provision("i1", { ...sync, parameters: { size: 2 } });
    for (const ask of [sync, { acceptsIncomplete: true }]) {
      const again = await unchanged(flow, () => flow.provision("i1", { ...ask, parameters: { size: 2 } }));
      expect(again).toMatchObject({ status: 200, body: first.body });
    }
    expect(laboratory.done).toEqual(["provision i1"]);
  });

  test("PROV-04, PROV-05, B2: an identical request while it runs is a 202 with the same operation", async () => {
    const laboratory = lab();
    const held = gate();
    laboratory.behave.provision = held.wait;
    const flow = await flowOn(wire, laboratory);
    const first = await flow.provision("i1", { parameters: { size: 2, name: "a" } });
    const again = await unchanged(flow, () => flow.provision("i1", { parameters: { name: "a", size: 2 } }));
    expect(again).toMatchObject({ status: 202, body: first.body });
    held.open();
    await flow.advance();
    expect(laboratory.done).toEqual(["provision i1"]);
  });

  test("PROV-04: a synchronous repeat of what runs waits for its end, and says 200 where the first one says 201", async () => {
    const laboratory = lab();
    const held = gate();
    laboratory.behave.provision = held.wait;
    const flow = await flowOn(wire, laboratory);
    const both = [flow.provision("i1", sync), flow.provision("i1", sync)];
    await flow.advance();
    held.open();
    await flow.advance();
    expect((await Promise.all(both)).map(({ status }) => status)).toEqual([201, 200]);
    expect(laboratory.done).toEqual(["provision i1"]);
  });

  test.each([
    ["ready", "PROV-06, B2: another request for an instance that exists is a 409"],
    ["running", "PROV-07, B2: another request for an instance that is being made is a 409"],
  ])("%s: %s, whichever attribute differs", async (phase) => {
    const laboratory = lab();
    if (phase === "running") laboratory.behave.provision = hang;
    const other = { ...lab({ id: "svc-2", name: "other", plans: { a: { id: "plan-a", description: "a" } } }).service };
    const flow = await flowOn(wire, laboratory, { services: [laboratory.service, other] });
    await flow.provision("i1", { parameters: { size: 2 } });
    await flow.advance();
    const different: object[] = [
      { plan_id: ids.large },
      { service_id: "svc-2", plan_id: "plan-a" },
      { parameters: { size: 3 } },
      { parameters: {} },
      { organization_guid: "another" },
      { space_guid: "another" },
      { plan_id: "unknown" },
    ];
    for (const fields of different) {
      const ask = { parameters: { size: 2 }, with: fields as never };
      const answer = await unchanged(flow, () => flow.provision("i1", ask));
      expectRefusal(answer, 409);
    }
  });

  test("PROV-08, ROB-05: what is no JSON object is a 400", async () => {
    const flow = await flowOn(wire, lab());
    for (const body of ["", "{", "[]", "null", '"text"', "1", "true", "[{}]"]) {
      const answer = await unchanged(flow, () => flow.request("PUT", instancePath("i1"), { body }));
      expect(expectRefusal(answer, 400)).toContain("body");
    }
  });

  test.each([
    ["PROV-09, PROV-20: service_id", "service_id"],
    ["PROV-10, PROV-20: plan_id", "plan_id"],
    ["PROV-11, PROV-15: organization_guid", "organization_guid"],
    ["PROV-12, PROV-15: space_guid", "space_guid"],
  ])("%s is needed, as a text that is not empty", async (_, field) => {
    const flow = await flowOn(wire, lab());
    const { [field as "service_id"]: __, ...rest } = provisionBody;
    for (const body of [rest, ...[null, "", 1, true, [], {}, ["x"]].map((wrong) => ({ ...rest, [field]: wrong }))]) {
      const answer = await unchanged(flow, () => flow.request("PUT", instancePath("i1"), { body }));
      expect(expectRefusal(answer, 400)).toContain(field);
    }
  });

  test("PROV-13, PROV-14: services and plans that are not in the catalog are a 400", async () => {
    const other = lab({ id: "svc-2", name: "other", plans: { a: { id: "plan-a", description: "a" } } });
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, { services: [laboratory.service, other.service] });
    for (const [fields, named] of [
      [{ service_id: "unknown" }, "service_id"],
      [{ plan_id: "unknown" }, "plan_id"],
      [{ plan_id: "plan-a" }, "plan_id"],
      [{ service_id: "__proto__", plan_id: "constructor" }, "service_id"],
    ] as const) {
      const answer = await unchanged(flow, () => flow.provision("i1", { with: fields }));
      expect(expectRefusal(answer, 400)).toContain(named);
    }
  });

  test.each([
    ["PROV-16: context", "context"],
    ["PROV-17: parameters", "parameters"],
  ])("%s has to be an object", async (_, field) => {
    const flow = await flowOn(wire, lab());
    for (const wrong of ["x", 1, true, [], [{}]]) {
      const answer = await unchanged(flow, () => flow.provision("i1", { with: { [field]: wrong } }));
      expect(expectRefusal(answer, 400)).toContain(field);
    }
  });

  test("PROV-18, PROV-29: parameters that the plan does not allow are a 400, and there is no instance", async () => {
    const flow = await flowOn(wire, lab());
    const answer = await unchanged(flow, () => flow.provision("i1", { parameters: { size: -1 } }));
    expect(expectRefusal(answer, 400)).toContain("parameters.size");
    expectRefusal(await flow.deprovision("i1"), 410);
    expectRefusal(await flow.fetch("i1"), 404);
    expectRefusal(await flow.lastOperation("i1"), 404);
  });

  test("PROV-19: what is only provisioned asynchronously says so", async () => {
    const flow = await flowOn(wire, lab({ async: { provision: "require" } }));
    expectRefusal(await unchanged(flow, () => flow.provision("i1", sync)), 422, "AsyncRequired");
    expect((await flow.provision("i1")).status).toBe(202);
  });

  test("PROV-21, PROV-22, PROV-23, PROV-25, META-01, META-02, B5: the first answer carries dashboard and metadata, also when it is a 202", async () => {
    const laboratory = lab(dashboards);
    laboratory.behave.provision = hang;
    const flow = await flowOn(wire, laboratory);
    const first = await flow.provision("i1");
    expect(first).toMatchObject({
      status: 202,
      body: {
        dashboard_url: "https://lab.example/i1",
        metadata: { labels: { tier: "one" }, attributes: { version: "16" } },
      },
    });
    expect((await flow.provision("i1")).body).toEqual(first.body);
    expect((await flow.provision("i2")).body.dashboard_url).toBe("https://lab.example/i2");
  });

  test("PROV-21: without a dashboard there is no dashboard_url", async () => {
    const flow = await flowOn(wire, lab());
    expect((await flow.provision("i1", sync)).body).toEqual({});
    expect((await flow.provision("i2")).body).toEqual({ operation: expect.any(String) });
  });

  test("PROV-22, PROV-25: what only the end of a synchronous provision knows is in its answer", async () => {
    const laboratory = lab();
    laboratory.behave.provision = () => ({ dashboardUrl: "https://late.example", metadata: { labels: { a: "b" } } });
    const flow = await flowOn(wire, laboratory);
    const told = { dashboard_url: "https://late.example", metadata: { labels: { a: "b" } } };
    expect((await flow.provision("i1", sync)).body).toEqual(told);
    expect((await flow.provision("i1", sync)).body).toEqual(told);
  });

  test("PROV-26: the id of a deleted instance can be used again, with other attributes too", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await flow.provision("i1", sync);
    await flow.deprovision("i1", sync);
    expect((await flow.provision("i1", { ...sync, plan: "large" })).status).toBe(201);
    expect((await flow.fetch("i1")).body.plan_id).toBe(ids.large);
    expect(laboratory.done).toEqual(["provision i1", "deprovision i1", "provision i1"]);
  });

  test("PROV-28, PROF-13: a context is not needed", async () => {
    const flow = await flowOn(wire, lab());
    expect((await flow.provision("i1", sync)).status).toBe(201);
    expect((await flow.provision("i2", { ...sync, with: { context: null } })).status).toBe(201);
  });

  test("B1: the record is written before the author's code runs, and a later delete undoes what there was", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    let seen: unknown;
    laboratory.behave.provision = async (work) => {
      seen = await flow.broker.journal.read("/i1", ["instance"]);
      await work.saveState({ half: "made" });
      throw new Failed("the second half cannot be made");
    };
    await flow.provision("i1");
    await flow.advance();
    expect((seen as { data: object }).data).toMatchObject({ phase: "creating" });
    expect((await flow.lastOperation("i1")).body.state).toBe("failed");
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
    expect(laboratory.done).toEqual(["provision i1", "deprovision i1 undoing create"]);
  });

  test("B1: deprovision gets the state that was saved before the provision failed", async () => {
    let given: unknown;
    const flow = await flowOn(wire, {
      service: {
        ...lab().service,
        async provision(work) {
          await work.step("reserve", () => "host-7");
          await work.saveState({ host: "host-7" });
          throw new Failed("no room");
        },
        async deprovision(_work, { state, steps }) {
          given = { state, steps: [...steps] };
        },
      },
    });
    await flow.provision("i1");
    await flow.advance();
    await flow.deprovision("i1", sync);
    expect(given).toEqual({ state: { host: "host-7" }, steps: [["reserve", "host-7"]] });
  });

  test("B1: a second attempt that is refused does not forget what the first one left", async () => {
    const done: string[] = [];
    let attempt = 0;
    const flow = await flowOn(wire, {
      service: {
        ...lab().service,
        async provision(work) {
          attempt++;
          if (attempt === 2) throw new BrokerError("unprocessable", "not now");
          await work.step(`create ${attempt}`, () => void done.push(`create ${attempt}`));
          throw new Failed("no room");
        },
        async deprovision(_work, { steps }) {
          done.push(`undo ${[...steps.keys()].sort().join(", ")}`);
        },
      },
    });
    for (const status of [500, 500, 500]) expectRefusal(await flow.provision("i1", sync), status);
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
    expect(done).toEqual(["create 1", "create 3", "undo create 1, create 3"]);
  });

  test("B9: after a failure GET is a 404, an identical PUT is a new attempt, a different one a 409", async () => {
    const laboratory = lab();
    laboratory.behave.provision = () => {
      throw new Failed("no room");
    };
    const flow = await flowOn(wire, laboratory);
    await flow.provision("i1");
    await flow.advance();
    expectRefusal(await flow.fetch("i1"), 404);
    expectRefusal(await flow.provision("i1", { plan: "large" }), 409);
    delete laboratory.behave.provision;
    const again = await flow.provision("i1");
    expect(again.status).toBe(202);
    await flow.advance();
    expect((await flow.fetch("i1")).status).toBe(200);
    expect(laboratory.done).toEqual(["provision i1", "provision i1"]);
  });

  test("B9: the new attempt gets what the failed one has saved", async () => {
    const seen: unknown[] = [];
    const flow = await flowOn(wire, {
      service: {
        ...lab().service,
        async provision(work, { partial }) {
          seen.push(partial);
          if (partial === undefined) {
            await work.saveState({ host: "host-7" });
            throw new Failed("no room");
          }
          return undefined;
        },
      },
    });
    await flow.provision("i1", sync);
    expect((await flow.provision("i1", sync)).status).toBe(201);
    expect(seen).toEqual([undefined, { host: "host-7" }]);
  });

  test("a function that refuses with a 4xx before it has done anything leaves no instance", async () => {
    const flow = await flowOn(
      wire,
      lab({
        provision: async () => {
          throw new BrokerError("unprocessable", "the cluster is full; choose another plan");
        },
      }),
    );
    const answer = await flow.provision("i1", sync);
    expect(expectRefusal(answer, 422)).toBe("the cluster is full; choose another plan");
    expectRefusal(await flow.deprovision("i1"), 410);
    expectRefusal(await flow.provision("i1", { ...sync, plan: "large" }), 422);
  });

  test("a hook sees a request before anything has happened, and can refuse it", async () => {
    const laboratory = lab({
      hooks: {
        before({ verb, plan, instance }) {
          if (plan === "large") throw new BrokerError("forbidden", `no ${verb} of ${instance.id} in large`);
        },
      },
    });
    const flow = await flowOn(wire, laboratory);
    const answer = await unchanged(flow, () => flow.provision("i1", { plan: "large" }));
    expect(expectRefusal(answer, 403)).toBe("no provision of i1 in large");
    await ready(flow, "i1", { plan: "small" });
  });

  test("a hook is not asked about a repeat of what was accepted before", async () => {
    let quota = 1;
    const laboratory = lab({
      hooks: {
        before() {
          if (quota-- <= 0) throw new BrokerError("forbidden", "the quota is used up");
        },
      },
    });
    laboratory.behave.provision = hang;
    const flow = await flowOn(wire, laboratory);
    expect((await flow.provision("i1")).status).toBe(202);
    expect((await flow.provision("i1")).status).toBe(202);
    expectRefusal(await flow.provision("i2"), 403);
  });

  test("hooks see every verb, before and after", async () => {
    const seen: string[] = [];
    const flow = await flowOn(
      wire,
      lab({
        hooks: {
          before: ({ verb, plan, instance, binding }) =>
            void seen.push(`before ${verb} ${plan} ${instance.id} ${binding?.id ?? "-"}`),
          after: ({ verb, plan, instance, binding }) =>
            void seen.push(`after ${verb} ${plan} ${instance.id} ${binding?.id ?? "-"}`),
        },
      }),
    );
    await flow.provision("i1", sync);
    await flow.update("i1", { ...sync, plan: "large" });
    await flow.bind("i1", "b1", { ...sync, plan: "large" });
    await flow.unbind("i1", "b1", { ...sync, plan: "large" });
    await flow.deprovision("i1", { ...sync, plan: "large" });
    expect(seen).toEqual(
      [
        "provision small i1 -",
        "update large i1 -",
        "bind large i1 b1",
        "unbind large i1 b1",
        "deprovision large i1 -",
      ].flatMap((line) => [`before ${line}`, `after ${line}`]),
    );
  });

  test("a state that its schema refuses fails the provision, and says so", async () => {
    const laboratory = lab({ state: { type: "object", required: ["host"] } });
    laboratory.behave.provision = () => ({ state: {} });
    const flow = await flowOn(wire, laboratory);
    expect(expectRefusal(await flow.provision("i1", sync), 500)).toContain("host");
  });

  test("an author can answer a verb alone, under the same HTTP layer", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, {
      wire: (broker, options) =>
        adapters[wire]?.(broker, {
          ...options,
          handlers: {
            provision: async ({ instance, body, caller }) =>
              instance === "mine" ? { status: 201, body: { x_plan: body.plan_id, who: caller.credential } } : undefined,
            catalog: async () => ({ status: 200, body: { services: [], mine: true } }),
          },
        }) ?? (() => Promise.reject(new Error(wire))),
    });
    expect(await flow.provision("mine")).toMatchObject({ status: 201, body: { x_plan: ids.small, who: "anyone" } });
    expect((await flow.provision("theirs", sync)).status).toBe(201);
    expect(laboratory.done).toEqual(["provision theirs"]);
    expect((await flow.request("GET", "/v2/catalog")).body).toEqual({ services: [], mine: true });
  });

  test("URL-01, PROV-27: a service's id may be of any characters that the catalog takes", async () => {
    for (const id of ["服".repeat(60), "x".repeat(256), "é".repeat(128)]) {
      const flow = await flowOn(wire, lab({ id }));
      await ready(flow, "i1");
      await bound(flow, "i1", "b1");
    }
  });

  const malformed = [
    ["a number for a dashboard", { dashboardUrl: 1 }],
    ["an empty dashboard", { dashboardUrl: "" }],
    ["a text for metadata", { metadata: "tier" }],
    ["a list of labels", { metadata: { labels: ["one"] } }],
    ["a text for attributes", { metadata: { attributes: "16" } }],
    ["a list", []],
  ] as const;

  test.each(malformed)("PROV-21, PROV-25, META-01, META-02: %s is not given out", async (_, result) => {
    const laboratory = lab();
    laboratory.behave.provision = () => result;
    const flow = await flowOn(wire, laboratory);
    expect(expectRefusal(await flow.provision("i1", sync), 500)).toContain("cannot be given out");
    const told: unknown[] = [];
    const prepared = lab({ prepare: (() => result) as never });
    const other = await flowOn(wire, prepared, { onError: (error) => void told.push(String(error)) });
    expectRefusal(await unchanged(other, () => other.provision("i1", sync)), 500);
    expect(told).toEqual([expect.stringContaining("prepare returned what cannot be given out")]);
  });

  test("PROV-22: prepare that is async by mistake is told to the operator, and its failure ends nothing", async () => {
    const told: unknown[] = [];
    const prepare = (async () => Promise.reject(new Error("later"))) as never;
    const flow = await flowOn(wire, lab({ prepare }), { onError: (error) => void told.push(String(error)) });
    expectRefusal(await flow.provision("i1"), 500);
    expect(told).toEqual([expect.stringContaining("must not be async")]);
  });
});

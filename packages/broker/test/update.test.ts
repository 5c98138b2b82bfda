import { describe, expect, test } from "vitest";
import { BrokerError, Failed } from "../src/index.js";
import { expectRefusal, flowOn, gate, hang, ids, instancePath, lab, ready, unchanged, wires } from "./lab.js";

const sync = { acceptsIncomplete: false };

describe.each(wires)("%s: update", (wire) => {
  test("UPD-01, UPD-25: a change that is done is a 200, and GET shows it", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1", { parameters: { size: 1, name: "a" } });
    expect(await flow.update("i1", { ...sync, plan: "large", parameters: { size: 2 } })).toMatchObject({
      status: 200,
      body: {},
    });
    expect((await flow.fetch("i1")).body).toMatchObject({ plan_id: ids.large, parameters: { size: 2, name: "a" } });
    expect(laboratory.done).toEqual(["provision i1", 'update i1 large {"size":2}']);
  });

  test("UPD-02: what changes nothing is a 200, and no function runs", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    for (const ask of [{}, { plan: "small" }]) {
      expect((await unchanged(flow, () => flow.update("i1", ask))).status).toBe(200);
    }
    expect(laboratory.done).toEqual(["provision i1"]);
  });

  test("UPD-03, UPD-04, UPD-05, UPD-19, B2: an identical update while it runs is a 202 with the same operation", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.update = hang;
    const first = await flow.update("i1", { parameters: { size: 2, name: "a" } });
    expect(first.status).toBe(202);
    expect(first.body.operation).toMatch(/./);
    const again = await unchanged(flow, () => flow.update("i1", { parameters: { name: "a", size: 2 } }));
    expect(again).toMatchObject({ status: 202, body: first.body });
    expectRefusal(await flow.update("i1", { parameters: { size: 3 } }), 422, "ConcurrencyError");
  });

  test("UPD-06: what is no JSON object is a 400", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    for (const body of ["", "{", "[]", "null", "1"]) {
      expectRefusal(await unchanged(flow, () => flow.request("PATCH", instancePath("i1"), { body })), 400);
    }
  });

  test("UPD-07, UPD-06: service_id is needed, as a text that is not empty", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    for (const body of [{}, ...["", 1, null, [], {}].map((wrong) => ({ service_id: wrong, plan_id: ids.large }))]) {
      const answer = await unchanged(flow, () => flow.request("PATCH", instancePath("i1"), { body }));
      expect(expectRefusal(answer, 400)).toContain("service_id");
    }
    for (const wrong of [1, [], {}]) {
      const body = { service_id: ids.service, plan_id: wrong };
      const answer = await unchanged(flow, () => flow.request("PATCH", instancePath("i1"), { body }));
      expect(expectRefusal(answer, 400)).toContain("plan_id");
    }
  });

  test("UPD-08, UPD-16: a plan that cannot be left is a 422 that says so", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1", { plan: "sealed" });
    const answer = await unchanged(flow, () => flow.update("i1", { plan: "small" }));
    expect(expectRefusal(answer, 422)).toContain("plan");
    expect(answer.body.error).not.toMatch(/AsyncRequired|ConcurrencyError|RequiresApp|MaintenanceInfoConflict/);
  });

  test("UPD-09, UPD-13: what the author cannot fulfil now is a 422 in a synchronous answer, and nothing is changed", async () => {
    const laboratory = lab();
    laboratory.behave.update = () => {
      throw new BrokerError("unprocessable", "the quota does not allow this");
    };
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const answer = await flow.update("i1", { ...sync, plan: "large", parameters: { size: 9 } });
    expect(expectRefusal(answer, 422)).toBe("the quota does not allow this");
    expect((await flow.fetch("i1")).body).toMatchObject({ plan_id: ids.small, parameters: {} });
  });

  test("UPD-09: a hook refuses it before the platform gets its 202", async () => {
    const flow = await flowOn(
      wire,
      lab({
        hooks: {
          before({ verb }) {
            if (verb === "update") throw new BrokerError("unprocessable", "the quota does not allow this");
          },
        },
      }),
    );
    await ready(flow, "i1");
    expectRefusal(await unchanged(flow, () => flow.update("i1", { plan: "large" })), 422);
  });

  test("UPD-10: what is only updated asynchronously says so", async () => {
    const flow = await flowOn(wire, lab({ async: { update: "require" } }));
    await ready(flow, "i1");
    expectRefusal(await unchanged(flow, () => flow.update("i1", { ...sync, plan: "large" })), 422, "AsyncRequired");
  });

  test("UPD-11, UPD-12: what is left out stays as it is", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1", { parameters: { size: 1 } });
    await flow.update("i1", { ...sync, parameters: { size: 2 } });
    expect((await flow.fetch("i1")).body).toMatchObject({ plan_id: ids.small, parameters: { size: 2 } });
    await flow.update("i1", { ...sync, plan: "large" });
    expect((await flow.fetch("i1")).body).toMatchObject({ plan_id: ids.large, parameters: { size: 2 } });
  });

  test("UPD-13, ERR-08: an update that fails with a 5xx changes nothing either", async () => {
    const laboratory = lab();
    laboratory.behave.update = () => {
      throw new Failed("the disk is full");
    };
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1", { parameters: { size: 1 } });
    const before = await flow.fetch("i1");
    expectRefusal(await flow.update("i1", { ...sync, plan: "large", parameters: { size: 2 } }), 500);
    expect((await flow.fetch("i1")).body).toEqual(before.body);
  });

  test("UPD-14, UPD-15: plans and services that are not the instance's are refused", async () => {
    const other = lab({ id: "svc-2", name: "other", plans: { a: { id: "plan-a", description: "a" } } });
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, { services: [laboratory.service, other.service] });
    await ready(flow, "i1");
    for (const [fields, named] of [
      [{ plan_id: "unknown" }, "plan_id"],
      [{ plan_id: "plan-a" }, "plan_id"],
      [{ service_id: "unknown" }, "service_id"],
      [{ service_id: "svc-2" }, "service_id"],
      [{ service_id: "svc-2", plan_id: "plan-a" }, "service_id"],
    ] as const) {
      const answer = await unchanged(flow, () => flow.update("i1", { with: fields }));
      expect(expectRefusal(answer, 400)).toContain(named);
    }
  });

  test("UPD-17: an update of the context alone reaches the author, where the catalog allows it", async () => {
    const seen: unknown[] = [];
    const flow = await flowOn(wire, {
      service: {
        ...lab({ allowContextUpdates: true }).service,
        async update(_work, { instance, plan }) {
          seen.push([plan, instance.context]);
          return undefined;
        },
      },
    });
    const context = { platform: "cloudfoundry", space_guid: "s", instance_name: "old" };
    await ready(flow, "i1", { with: { context } });
    await flow.update("i1", { ...sync, with: { context: { instance_name: "new" } } });
    expect(seen).toEqual([["small", { ...context, instance_name: "new" }]]);
  });

  test("UPD-18, UPD-20, META-01, META-02, B5: a new dashboard and metadata are in the first answer, also when it is a 202", async () => {
    const laboratory = lab({
      prepare: () => ({ dashboardUrl: "https://lab.example/small" }),
      prepareUpdate: (({ plan }: { plan: string }) =>
        plan === "large"
          ? { dashboardUrl: "https://lab.example/large", metadata: { labels: { a: "b" }, attributes: { c: "d" } } }
          : {}) as never,
    });
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const unrelated = await flow.update("i1", { parameters: { size: 2 } });
    expect(unrelated.body).toEqual({ operation: expect.any(String) });
    await flow.advance();
    expect((await flow.fetch("i1")).body.dashboard_url).toBe("https://lab.example/small");
    const { status, body } = await flow.update("i1", { plan: "large" });
    expect(status).toBe(202);
    expect(body).toMatchObject({
      dashboard_url: "https://lab.example/large",
      metadata: { labels: { a: "b" }, attributes: { c: "d" } },
    });
    await flow.advance();
    expect((await flow.fetch("i1")).body).toMatchObject({
      dashboard_url: "https://lab.example/large",
      metadata: { labels: { a: "b" } },
    });
  });

  test("UPD-18, FETCH-07: a dashboard that only the end of the work knew keeps the old one in sight", async () => {
    const laboratory = lab({ prepare: () => ({ dashboardUrl: "https://old.example" }) });
    laboratory.behave.update = () => ({ dashboardUrl: "https://new.example" });
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    await flow.update("i1", { plan: "large" });
    await flow.advance();
    expect((await flow.fetch("i1")).body.dashboard_url).toBe("https://old.example");
    expect((await flow.update("i1", { ...sync, plan: "small" })).body.dashboard_url).toBe("https://new.example");
    expect((await flow.fetch("i1")).body.dashboard_url).toBe("https://new.example");
  });

  test("UPD-21: previous values may be there or not, right, wrong or partial", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    let size = 2;
    for (const previous_values of [{}, { plan_id: ids.small }, { plan_id: "wrong", service_id: 5 }, null]) {
      const ask = { ...sync, parameters: { size: size++ }, with: { previous_values: previous_values as never } };
      expect((await flow.update("i1", ask)).status).toBe(200);
    }
  });

  test("UPD-22, UPD-27: a failed update says whether the instance can be used, and another one may repair it", async () => {
    const laboratory = lab();
    laboratory.behave.update = () => {
      throw new Failed("half moved", { instanceUsable: false, updateRepeatable: true });
    };
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    await flow.update("i1", { plan: "large" });
    await flow.advance();
    expect((await flow.lastOperation("i1")).body).toMatchObject({ instance_usable: false, update_repeatable: true });
    delete laboratory.behave.update;
    expect((await flow.update("i1", { ...sync, plan: "large" })).status).toBe(200);
    expect((await flow.lastOperation("i1")).body).not.toHaveProperty("instance_usable");
  });

  test("UPD-23: parameters that the plan does not allow are a 400", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const answer = await unchanged(flow, () => flow.update("i1", { parameters: { size: "x" } }));
    expect(expectRefusal(answer, 400)).toContain("parameters.size");
  });

  test("UPD-24: an instance that never was, or is gone, or could not be made, is a 404", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    expectRefusal(await unchanged(flow, () => flow.update("never", { plan: "large" })), 404);
    await ready(flow, "gone");
    await flow.deprovision("gone", sync);
    expectRefusal(await unchanged(flow, () => flow.update("gone", { plan: "large" })), 404);
    laboratory.behave.provision = () => {
      throw new Failed("no room");
    };
    await flow.provision("failed", sync);
    expectRefusal(await unchanged(flow, () => flow.update("failed", { plan: "large" })), 404);
  });

  test("UPD-26: parameters, context and previous_values have to be objects", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    for (const field of ["parameters", "context", "previous_values"]) {
      for (const wrong of ["x", 1, true, [], [{}]]) {
        const answer = await unchanged(flow, () => flow.update("i1", { plan: "large", with: { [field]: wrong } }));
        expect(expectRefusal(answer, 400)).toContain(field);
      }
    }
  });

  test("UPD-28: an instance that is still being made is a ConcurrencyError", async () => {
    const laboratory = lab();
    const held = gate();
    laboratory.behave.provision = held.wait;
    const flow = await flowOn(wire, laboratory);
    await flow.provision("i1");
    expectRefusal(await unchanged(flow, () => flow.update("i1", { plan: "large" })), 422, "ConcurrencyError");
    held.open();
    await flow.advance();
    expect((await flow.update("i1", { ...sync, plan: "large" })).status).toBe(200);
  });

  test("an update is given the state, what was before, and the maintenance that is asked for", async () => {
    let given: unknown;
    const flow = await flowOn(wire, {
      service: {
        ...lab().service,
        async update(_work, { plan, parameters, previous, state, maintenance }) {
          given = { plan, parameters, previous, state, maintenance };
          return { state: { host: "host-2" } };
        },
      },
    });
    await ready(flow, "i1", { parameters: { size: 1 } });
    const ask = { ...sync, parameters: { size: 2 }, with: { maintenance_info: { version: "1.2.3" } } };
    await flow.update("i1", ask);
    expect(given).toEqual({
      plan: "small",
      parameters: { size: 2 },
      previous: { plan: "small", parameters: { size: 1 } },
      state: { host: "host-i1" },
      maintenance: { version: "1.2.3" },
    });
    expect((await flow.bind("i1", "b1", sync)).body.credentials).toEqual({ user: "b1", host: "host-2" });
  });

  test("UPD-23, B13: what would be refused is not prepared: the author is given no parameters that break the schema", async () => {
    const service = lab({
      prepareUpdate: (({ parameters }: { parameters: { size: number } }) => ({
        dashboardUrl: `https://lab.example/${parameters.size.toFixed()}`,
      })) as never,
    });
    const flow = await flowOn(wire, service);
    await ready(flow, "i1");
    for (const size of ["large", null, 0])
      expectRefusal(await unchanged(flow, () => flow.update("i1", { parameters: { size } })), 400);
    const good = await flow.update("i1", { parameters: { size: 2 } });
    expect([good.status, good.body.dashboard_url]).toEqual([202, "https://lab.example/2"]);
  });
});

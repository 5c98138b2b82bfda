import { describe, expect, test } from "vitest";
import { expectRefusal, flowOn, ids, lab, plans, ready, unchanged, wires } from "./lab.js";

const info = (version: unknown, more: object = {}) => ({ with: { maintenance_info: { version, ...more } as never } });

describe.each(wires)("%s: maintenance info", (wire) => {
  test("MAINT-03, MAINT-08, PROV-29, B7: a provision with another version is a MaintenanceInfoConflict, and creates nothing", async () => {
    const flow = await flowOn(wire, lab());
    const answer = await unchanged(flow, () => flow.provision("i1", info("1.2.4")));
    expect(expectRefusal(answer, 422, "MaintenanceInfoConflict")).toContain("1.2.3");
    expectRefusal(await flow.deprovision("i1"), 410);
  });

  test("MAINT-04, MAINT-08: so is an update, and changes nothing", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const answer = await unchanged(flow, () => flow.update("i1", info("1.2.4")));
    expectRefusal(answer, 422, "MaintenanceInfoConflict");
  });

  test("MAINT-05: other fields of maintenance_info are not compared", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1", info("1.2.3", { description: "something else", more: 1 }));
    const update = { ...info("1.2.3", { description: 5 }), acceptsIncomplete: false };
    expect((await flow.update("i1", update)).status).toBe(200);
  });

  test("MAINT-06, MAINT-09, FETCH-09: the catalog's version goes on normally, and GET tells what the instance runs", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1", info("1.2.3"));
    expect((await flow.fetch("i1")).body.maintenance_info).toEqual({ version: "1.2.3" });
    const next = { ...plans.small, maintenanceInfo: { version: "2.0.0" } };
    await flow.broker.offer([{ ...laboratory.service, plans: { ...plans, small: next } }]);
    expect((await flow.fetch("i1")).body.maintenance_info).toEqual({ version: "1.2.3" });
    expect((await flow.update("i1", { ...info("2.0.0"), acceptsIncomplete: false })).status).toBe(200);
    expect((await flow.fetch("i1")).body.maintenance_info).toEqual({ version: "2.0.0" });
  });

  test("MAINT-07: a plan without maintenance_info conflicts with any version", async () => {
    const flow = await flowOn(wire, lab());
    const answer = await unchanged(flow, () => flow.provision("i1", { ...info("1.0.0"), plan: "large" }));
    expectRefusal(answer, 422, "MaintenanceInfoConflict");
  });

  test("MAINT-10: what is no maintenance info is a 400 that names it", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    for (const wrong of ["1.2.3", 1, [], true, { version: 1 }, { version: [] }]) {
      const ask = { with: { maintenance_info: wrong as never } };
      expect(expectRefusal(await unchanged(flow, () => flow.provision("i2", ask)), 400)).toContain("maintenance_info");
      expect(expectRefusal(await unchanged(flow, () => flow.update("i1", ask)), 400)).toContain("maintenance_info");
    }
  });

  test("MAINT-11: with a plan change, the version is that of the plan it leads to", async () => {
    const large = { ...plans.large, maintenanceInfo: { version: "3.0.0" } };
    const flow = await flowOn(wire, lab({ plans: { small: plans.small, large } }));
    await ready(flow, "i1");
    expectRefusal(await flow.update("i1", { ...info("1.2.3"), plan: "large" }), 422, "MaintenanceInfoConflict");
    expect((await flow.update("i1", { ...info("3.0.0"), plan: "large", acceptsIncomplete: false })).status).toBe(200);
    expect((await flow.fetch("i1")).body).toMatchObject({ plan_id: ids.large, maintenance_info: { version: "3.0.0" } });
  });

  test("MAINT-09: after a plan change without a version, none is told: that of the old plan is not the instance's", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1", info("1.2.3"));
    expect((await flow.update("i1", { plan: "large", acceptsIncomplete: false })).status).toBe(200);
    expect((await flow.fetch("i1")).body).not.toHaveProperty("maintenance_info");
  });

  test("a repeat of a provision is one, also when the catalog's version has moved on", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1", info("1.2.3"));
    const next = { ...plans.small, maintenanceInfo: { version: "2.0.0" } };
    await flow.broker.offer([lab({ plans: { ...plans, small: next } }).service]);
    expect((await flow.provision("i1", info("1.2.3"))).status).toBe(200);
  });
});

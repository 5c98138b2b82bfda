import { describe, expect, test } from "vitest";
import { Failed } from "../src/index.js";
import { expectRefusal, flowOn, gate, hang, ids, instancePath, lab, ready, wires } from "./lab.js";

const sync = { acceptsIncomplete: false };

describe.each(wires)("%s: fetching an instance", (wire) => {
  test("FETCH-01, FETCH-06, FETCH-08: instances of all plans can be fetched, with service, plan and parameters", async () => {
    const flow = await flowOn(wire, lab());
    for (const [plan, id] of [
      ["small", ids.small],
      ["large", ids.large],
      ["sealed", ids.sealed],
    ] as const) {
      await ready(flow, plan, { plan, ...(plan === "small" && { parameters: { size: 3 } }) });
      expect(await flow.fetch(plan)).toMatchObject({
        status: 200,
        body: { service_id: ids.service, plan_id: id, parameters: plan === "small" ? { size: 3 } : {} },
      });
    }
  });

  test("FETCH-02: it is there as soon as last_operation says so", async () => {
    const laboratory = lab();
    const held = gate();
    laboratory.behave.provision = held.wait;
    const flow = await flowOn(wire, laboratory);
    await flow.provision("i1");
    held.open();
    for (;;) {
      const { body } = await flow.lastOperation("i1");
      if (body.state === "succeeded") break;
    }
    expect((await flow.fetch("i1")).status).toBe(200);
  });

  test("FETCH-03: one that never was is a 404", async () => {
    const flow = await flowOn(wire, lab());
    expectRefusal(await flow.fetch("never"), 404);
  });

  test("FETCH-04: one that is being made is a 404, and one that could not be made", async () => {
    const laboratory = lab();
    laboratory.behave.provision = hang;
    const flow = await flowOn(wire, laboratory);
    await flow.provision("i1");
    expectRefusal(await flow.fetch("i1"), 404);
    laboratory.behave.provision = () => {
      throw new Failed("no room");
    };
    await flow.provision("i2");
    await flow.advance();
    expectRefusal(await flow.fetch("i2"), 404);
  });

  test("FETCH-05: one that is being updated is told as it was; one that is being deleted is a ConcurrencyError", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const held = gate();
    laboratory.behave.update = held.wait;
    await flow.update("i1", { plan: "large" });
    expect(await flow.fetch("i1")).toMatchObject({ status: 200, body: { plan_id: ids.small } });
    held.open();
    await flow.advance();
    laboratory.behave.deprovision = hang;
    await flow.deprovision("i1");
    expectRefusal(await flow.fetch("i1"), 422, "ConcurrencyError");
  });

  test("FETCH-07, PROV-22: the dashboard is the one of the provision's answer", async () => {
    const prepare = (({ instance }: { instance: { id: string } }) => ({
      dashboardUrl: `https://lab.example/${instance.id}`,
    })) as never;
    const flow = await flowOn(wire, lab({ prepare }));
    const { body } = await ready(flow, "i1");
    expect((await flow.fetch("i1")).body.dashboard_url).toBe(body.dashboard_url);
  });

  test("FETCH-07: a dashboard that no answer has told is not shown, but a repeated provision tells it", async () => {
    const laboratory = lab();
    laboratory.behave.provision = () => ({ dashboardUrl: "https://late.example" });
    const flow = await flowOn(wire, laboratory);
    expect((await ready(flow, "i1")).body).not.toHaveProperty("dashboard_url");
    expect((await flow.fetch("i1")).body).not.toHaveProperty("dashboard_url");
    expect((await flow.provision("i1")).body).toEqual({ dashboard_url: "https://late.example" });
    expect((await flow.provision("i2", sync)).body).toEqual({ dashboard_url: "https://late.example" });
    expect((await flow.fetch("i2")).body.dashboard_url).toBe("https://late.example");
  });

  test("FETCH-10, META-01, META-02: metadata is told as the author gave it", async () => {
    const metadata = { labels: { a: "b" }, attributes: { version: "16" } };
    const laboratory = lab();
    laboratory.behave.provision = () => ({ metadata });
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    expect((await flow.fetch("i1")).body.metadata).toEqual(metadata);
  });

  test("FETCH-11: hints may be sent or not", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    for (const query of ["", `?service_id=${ids.service}&plan_id=${ids.small}`]) {
      expect((await flow.request("GET", `${instancePath("i1")}${query}`)).status).toBe(200);
    }
  });

  test("FETCH-12: after the delete it is a 404", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await flow.deprovision("i1", sync);
    expectRefusal(await flow.fetch("i1"), 404);
  });
});

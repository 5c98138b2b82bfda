import { describe, expect, test } from "vitest";
import { Failed } from "../src/index.js";
import { bindingPath, bound, expectRefusal, flowOn, hang, ids, lab, ready, wires } from "./lab.js";

const sync = { acceptsIncomplete: false };

describe.each(wires)("%s: fetching a binding", (wire) => {
  test("BFETCH-01, BFETCH-02, BFETCH-05, BFETCH-07, BIND-30: a binding made asynchronously is there with its credentials once last_operation says so", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await flow.bind("i1", "b1", { parameters: { role: "reader" } });
    for (;;) {
      const { body } = await flow.lastOperation("i1", { binding: "b1" });
      if (body.state === "succeeded") break;
    }
    expect(await flow.fetch("i1", "b1")).toMatchObject({
      status: 200,
      body: { credentials: { user: "b1", host: "host-i1", role: "reader" }, parameters: { role: "reader" } },
    });
  });

  test("BFETCH-01: bindings of all bindable plans can be fetched", async () => {
    const flow = await flowOn(wire, lab());
    for (const plan of ["small", "large"]) {
      await ready(flow, plan, { plan });
      await bound(flow, plan, "b1", { plan });
      expect((await flow.fetch(plan, "b1")).status).toBe(200);
    }
  });

  test("BFETCH-03, BFETCH-09: one that never was, or is another instance's, is a 404", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await ready(flow, "i2");
    await bound(flow, "i1", "b1");
    expectRefusal(await flow.fetch("i1", "never"), 404);
    expectRefusal(await flow.fetch("i2", "b1"), 404);
    expectRefusal(await flow.fetch("never", "b1"), 404);
  });

  test("BFETCH-04: one that is being made is a 404, and one that could not be made", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.bind = hang;
    await flow.bind("i1", "b1");
    expectRefusal(await flow.fetch("i1", "b1"), 404);
    laboratory.behave.bind = () => {
      throw new Failed("no more users");
    };
    await flow.bind("i1", "b2", sync);
    expectRefusal(await flow.fetch("i1", "b2"), 404);
  });

  test("BFETCH-08: hints may be sent or not", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    for (const query of ["", `?service_id=${ids.service}&plan_id=${ids.small}`]) {
      expect((await flow.request("GET", `${bindingPath("i1", "b1")}${query}`)).status).toBe(200);
    }
  });

  test("BFETCH-10: it can be fetched as often as one likes", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const { body } = await bound(flow, "i1", "b1");
    for (let time = 0; time < 3; time++) {
      expect((await flow.fetch("i1", "b1")).body.credentials).toEqual(body.credentials);
    }
  });

  test("BFETCH-11: after the unbind it is a 404; while it is being unbound, a ConcurrencyError", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    await flow.unbind("i1", "b1", sync);
    expectRefusal(await flow.fetch("i1", "b1"), 404);
    await bound(flow, "i1", "b2");
    laboratory.behave.unbind = hang;
    await flow.unbind("i1", "b2");
    expectRefusal(await flow.fetch("i1", "b2"), 422, "ConcurrencyError");
  });
});

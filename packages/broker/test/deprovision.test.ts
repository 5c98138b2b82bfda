import { describe, expect, test } from "vitest";
import { Failed } from "../src/index.js";
import {
  bound,
  everything,
  expectRefusal,
  flowOn,
  gate,
  hang,
  ids,
  instancePath,
  lab,
  ready,
  unchanged,
  untilStopped,
  wires,
} from "./lab.js";

const sync = { acceptsIncomplete: false };

describe.each(wires)("%s: deprovision", (wire) => {
  test("DEL-01, DEL-02, ASYNC-09: an instance that is deleted by the request is a 200 with an empty object", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    expect(await flow.deprovision("i1", sync)).toMatchObject({ status: 200, body: {} });
    expect(laboratory.done).toEqual(["provision i1", "deprovision i1"]);
    expect((await flow.broker.journal.parts("/i1", "")).items).toEqual([]);
  });

  test("DEL-03, DEL-04, DEL-05, DEL-14, B2: a repeat while it runs is a 202 with the same operation", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.deprovision = hang;
    const first = await flow.deprovision("i1");
    expect(first).toMatchObject({ status: 202, body: { operation: expect.stringMatching(/^.{1,10000}$/) } });
    const again = await unchanged(flow, () => flow.deprovision("i1"));
    expect(again).toMatchObject({ status: 202, body: first.body });
  });

  test.each([
    ["DEL-06: service_id", "service_id"],
    ["DEL-07: plan_id", "plan_id"],
  ])("%s is needed in the query", async (_, field) => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const query = new URLSearchParams({ service_id: ids.service, plan_id: ids.small });
    query.delete(field);
    for (const text of [`${query}`, `${query}&${field}=`]) {
      const answer = await unchanged(flow, () => flow.request("DELETE", `${instancePath("i1")}?${text}`));
      expect(expectRefusal(answer, 400)).toContain(field);
    }
  });

  test("DEL-08: an instance that never was, or is gone, is a 410", async () => {
    const flow = await flowOn(wire, lab());
    expectRefusal(await unchanged(flow, () => flow.deprovision("never")), 410);
    await ready(flow, "i1");
    await flow.deprovision("i1", sync);
    expectRefusal(await unchanged(flow, () => flow.deprovision("i1")), 410);
    expectRefusal(await unchanged(flow, () => flow.deprovision("i1", sync)), 410);
  });

  test("DEL-09: what is only deprovisioned asynchronously says so", async () => {
    const flow = await flowOn(wire, lab({ async: { deprovision: "require" } }));
    await ready(flow, "i1");
    expectRefusal(await unchanged(flow, () => flow.deprovision("i1", sync)), 422, "AsyncRequired");
  });

  test("DEL-10: while it is being updated, or a binding is being changed, it is a ConcurrencyError", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    await ready(flow, "i2");
    Object.assign(laboratory.behave, { update: hang, bind: hang });
    await flow.update("i1", { plan: "large" });
    await flow.bind("i2", "b1");
    for (const instance of ["i1", "i2"]) {
      expectRefusal(await unchanged(flow, () => flow.deprovision(instance)), 422, "ConcurrencyError");
    }
  });

  test("DEL-11, DEL-12, B3: a delete during a provision halts it and undoes what it did; it does not appear later", async () => {
    const laboratory = lab();
    laboratory.behave.provision = untilStopped;
    const flow = await flowOn(wire, laboratory);
    const provision = await flow.provision("i1");
    await flow.advance();
    const gone = gate();
    laboratory.behave.deprovision = gone.wait;
    const deprovision = await flow.deprovision("i1");
    expect(deprovision.status).toBe(202);
    await flow.advance();
    expect((await flow.lastOperation("i1")).body.description).toContain("deprovisioned");
    expect((await flow.lastOperation("i1", { operation: provision.body.operation })).body.state).toBe("failed");
    gone.open();
    await flow.advance();
    expect(laboratory.done).toEqual(["provision i1", "deprovision i1 undoing create"]);
    expect((await flow.lastOperation("i1", { operation: deprovision.body.operation })).body.state).toBe("succeeded");
    await flow.advance(60_000);
    expectRefusal(await flow.fetch("i1"), 404);
    expectRefusal(await flow.deprovision("i1"), 410);
  });

  test("DEL-11: so it is when the function does not listen: what it returns later does not count", async () => {
    const laboratory = lab();
    const held = gate();
    laboratory.behave.provision = held.wait;
    const flow = await flowOn(wire, laboratory);
    await flow.provision("i1");
    await flow.advance();
    await flow.deprovision("i1");
    await flow.advance(10_000);
    expect(laboratory.done).toEqual(["provision i1", "deprovision i1 undoing create"]);
    held.open();
    await flow.advance(60_000);
    expectRefusal(await flow.fetch("i1"), 404);
    expectRefusal(await flow.deprovision("i1"), 410);
  });

  test("DEL-11: a provision that waits is ended without being run again", async () => {
    const laboratory = lab();
    laboratory.behave.provision = (work) => work.sleep("boot", 60_000);
    const flow = await flowOn(wire, laboratory);
    await flow.provision("i1");
    await flow.advance(1_000);
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
    await flow.advance(120_000);
    expect(laboratory.done).toEqual(["provision i1", "deprovision i1 undoing create"]);
  });

  test("DEL-13: after a synchronous delete the provision is told as failed", async () => {
    const laboratory = lab();
    laboratory.behave.provision = untilStopped;
    const flow = await flowOn(wire, laboratory);
    const { body } = await flow.provision("i1");
    await flow.advance();
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
    expect((await flow.lastOperation("i1", { operation: body.operation })).body.state).toBe("failed");
  });

  test("DEL-15, B11: bindings that are left keep the instance, with a sentence that says how many", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    expect(expectRefusal(await unchanged(flow, () => flow.deprovision("i1")), 422)).toContain("1 binding is left");
    await bound(flow, "i1", "b2");
    expect(expectRefusal(await unchanged(flow, () => flow.deprovision("i1")), 422)).toContain("2 bindings are left");
    await flow.unbind("i1", "b1", sync);
    await flow.unbind("i1", "b2", sync);
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
  });

  test("DEL-15, B11: with cascade they go first, each with the author's own unbind", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, { cascade: true });
    await ready(flow, "i1");
    const long = "x".repeat(100);
    for (const binding of ["b1", `${long}-1`, `${long}-2`]) await bound(flow, "i1", binding);
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
    expect(laboratory.done.slice(4)).toEqual([
      'unbind b1 {"user":"b1"}',
      `unbind ${long}-1 {"user":"${long}-1"}`,
      `unbind ${long}-2 {"user":"${long}-2"}`,
      "deprovision i1",
    ]);
    expectRefusal(await flow.unbind("i1", "b1"), 410);
  });

  test("DEL-15, B11: a cascade that fails half-way has removed what it says, and can be repeated", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, { cascade: true });
    await ready(flow, "i1");
    for (const binding of ["b1", "b2", "b3"]) await bound(flow, "i1", binding);
    let left = 1;
    laboratory.behave.unbind = () => {
      if (left-- <= 0) throw new Failed("the server is away");
    };
    expectRefusal(await flow.deprovision("i1", sync), 500);
    expectRefusal(await flow.fetch("i1", "b1"), 404);
    expect((await flow.fetch("i1", "b2")).status).toBe(200);
    expect((await flow.broker.journal.read("/i1"))?.data).toMatchObject({ phase: "ready", bindings: 2 });
    delete laboratory.behave.unbind;
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
    expect(laboratory.done.filter((line) => line.startsWith("unbind b1"))).toHaveLength(1);
  });

  test("DEL-16, ERR-04: a delete that fails leaves the instance, says whether it can be used, and can be repeated", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.deprovision = () => {
      throw new Failed("half removed", { instanceUsable: false, updateRepeatable: false });
    };
    await flow.deprovision("i1");
    await flow.advance();
    expect((await flow.lastOperation("i1")).body).toEqual({
      state: "failed",
      description: "half removed",
      instance_usable: false,
    });
    expect((await flow.fetch("i1")).status).toBe(200);
    delete laboratory.behave.deprovision;
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
  });

  test("B9, FETCH-04: a delete that fails does not bring an instance to life that could not be made", async () => {
    const laboratory = lab();
    const fail = () => {
      throw new Failed("the server is away");
    };
    Object.assign(laboratory.behave, { provision: fail, deprovision: fail });
    const flow = await flowOn(wire, laboratory);
    await flow.provision("i1", sync);
    expectRefusal(await flow.deprovision("i1", sync), 500);
    expectRefusal(await flow.fetch("i1"), 404);
    expectRefusal(await flow.bind("i1", "b1"), 404);
    delete laboratory.behave.provision;
    expect((await flow.provision("i1", sync)).status).toBe(201);
  });

  test("DEL-17: a service that is not the instance's is a 400; the plan may be one that it had before", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const answer = await unchanged(flow, () => flow.deprovision("i1", { with: { service_id: "other" } }));
    expect(expectRefusal(answer, 400)).toContain("service_id");
    expect((await flow.deprovision("i1", { ...sync, plan: "large" })).status).toBe(200);
  });

  test("DEL-01: bindings that could not be made are undone with the instance", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.bind = () => {
      throw new Failed("no more users");
    };
    await flow.bind("i1", "b1", sync);
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
    expect(laboratory.done.slice(1)).toEqual(["bind b1", "unbind b1 null undoing grant", "deprovision i1"]);
    expect(JSON.stringify(await everything(flow))).not.toContain('"id":"binding/');
  });
});

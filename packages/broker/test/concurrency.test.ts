import { describe, expect, test } from "vitest";
import { BrokerError } from "../src/index.js";
import type { TestAnswer } from "../src/testing/index.js";
import { bound, expectRefusal, flowOn, gate, hang, ids, lab, ready, unchanged, untilStopped, wires } from "./lab.js";

describe.each(wires)("%s: concurrency", (wire) => {
  test("CONC-01, CONC-04, CONC-05, B3: a second, different operation on a busy instance is a ConcurrencyError that says what it waits for", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    const held = gate();
    laboratory.behave.update = held.wait;
    const { body } = await flow.update("i1", { parameters: { size: 2 } });
    const asks = [
      () => flow.update("i1", { parameters: { size: 3 } }),
      () => flow.update("i1", { plan: "large" }),
      () => flow.bind("i1", "b2"),
      () => flow.unbind("i1", "b1"),
      () => flow.deprovision("i1"),
    ];
    for (const ask of asks) {
      expect(expectRefusal(await unchanged(flow, ask), 422, "ConcurrencyError")).toContain("is being updated");
    }
    held.open();
    await flow.advance();
    expect((await flow.lastOperation("i1", { operation: body.operation })).body.state).toBe("succeeded");
    expect((await flow.fetch("i1")).body.parameters).toEqual({ size: 2 });
  });

  test("CONC-01, UPD-28, BIND-40, CONC-03: an instance that is being provisioned can be neither updated nor bound", async () => {
    const laboratory = lab();
    laboratory.behave.provision = hang;
    const flow = await flowOn(wire, laboratory);
    await flow.provision("i1");
    expectRefusal(await unchanged(flow, () => flow.update("i1", { plan: "large" })), 422, "ConcurrencyError");
    expectRefusal(await unchanged(flow, () => flow.bind("i1", "b1")), 422, "ConcurrencyError");
  });

  test("CONC-01: an instance that is being deprovisioned can be neither provisioned, updated nor bound", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.deprovision = hang;
    await flow.deprovision("i1");
    for (const ask of [
      () => flow.provision("i1"),
      () => flow.update("i1", { parameters: { size: 2 } }),
      () => flow.bind("i1", "b1"),
    ]) {
      expectRefusal(await unchanged(flow, ask), 422, "ConcurrencyError");
    }
  });

  test("CONC-02, B3: binds of one instance run side by side", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const held = gate();
    laboratory.behave.bind = held.wait;
    for (const binding of ["b1", "b2", "b3"]) expect((await flow.bind("i1", binding)).status).toBe(202);
    await flow.advance();
    expect(laboratory.done.slice(1)).toEqual(["bind b1", "bind b2", "bind b3"]);
    held.open();
    await flow.advance();
    for (const binding of ["b1", "b2", "b3"]) expect((await flow.fetch("i1", binding)).status).toBe(200);
  });

  test("B2: a bind that is repeated behind more others than the record holds gets 202 with its operation", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const held = gate();
    laboratory.behave.bind = held.wait;
    const names = Array.from({ length: 80 }, (_, index) => `b${index}`);
    const asked: TestAnswer[] = [];
    for (const binding of names) asked.push(await flow.bind("i1", binding));
    const { status, body } = await flow.bind("i1", "b79");
    expect([status, body.operation]).toEqual([202, asked[79]?.body.operation]);
    expect((await flow.lastOperation("i1", { binding: "b79" })).body.state).toBe("in progress");
    // One that waits so far back is undone as any other.
    expect((await flow.unbind("i1", "b78")).status).toBe(202);
    held.open();
    await flow.advance();
    for (const binding of ["b0", "b79"]) expect((await flow.fetch("i1", binding)).status).toBe(200);
    expectRefusal(await flow.fetch("i1", "b78"), 404);
  });

  test("CONC-01, UNB-10, DEL-10: while a binding is being changed, the instance is not", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.bind = hang;
    await flow.bind("i1", "b1");
    for (const ask of [() => flow.update("i1", { plan: "large" }), () => flow.deprovision("i1")]) {
      expect(expectRefusal(await unchanged(flow, ask), 422, "ConcurrencyError")).toContain("binding");
    }
  });

  test("CONC-01: instances do not wait for each other", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.update = hang;
    await flow.update("i1", { parameters: { size: 2 } });
    await ready(flow, "i2");
    await bound(flow, "i2", "b1");
  });

  test("CONC-01, BIND-13: an author's own refusal for concurrency is the same answer, and nothing is left of it", async () => {
    const service = lab({
      bind: async () => {
        throw new BrokerError("concurrency", "one bind at a time, please");
      },
    });
    const flow = await flowOn(wire, service);
    await ready(flow, "i1");
    const answer = await flow.bind("i1", "b1", { acceptsIncomplete: false });
    expect(expectRefusal(answer, 422, "ConcurrencyError")).toBe("one bind at a time, please");
    expectRefusal(await flow.unbind("i1", "b1"), 410);
    expect((await flow.deprovision("i1", { acceptsIncomplete: false })).status).toBe(200);
  });

  test("B3, DEL-11: a delete during a create is accepted; it cancels the create and undoes it", async () => {
    const laboratory = lab();
    laboratory.behave.provision = untilStopped;
    const flow = await flowOn(wire, laboratory);
    await flow.provision("i1");
    expect((await flow.deprovision("i1")).status).toBe(202);
    await flow.advance();
    expect(laboratory.done).toEqual(["provision i1", "deprovision i1 undoing create"]);
    expectRefusal(await flow.fetch("i1"), 404);
  });

  test("B3, DEL-10: a delete during an update is refused, and the update goes on", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const held = gate();
    laboratory.behave.update = held.wait;
    await flow.update("i1", { plan: "large" });
    expectRefusal(await unchanged(flow, () => flow.deprovision("i1")), 422, "ConcurrencyError");
    held.open();
    await flow.advance();
    expect((await flow.fetch("i1")).body.plan_id).toBe(ids.large);
  });
});

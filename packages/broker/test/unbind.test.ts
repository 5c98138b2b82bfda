import { describe, expect, test } from "vitest";
import { Failed } from "../src/index.js";
import {
  bindingPath,
  bound,
  expectRefusal,
  flowOn,
  gate,
  hang,
  ids,
  lab,
  ready,
  unchanged,
  untilStopped,
  wires,
} from "./lab.js";

const sync = { acceptsIncomplete: false };

describe.each(wires)("%s: unbind", (wire) => {
  test("UNB-01, UNB-02, ASYNC-09: a binding that is deleted by the request is a 200 with an empty object", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    expect(await flow.unbind("i1", "b1", sync)).toMatchObject({ status: 200, body: {} });
    expect(laboratory.done).toEqual(["provision i1", "bind b1", 'unbind b1 {"user":"b1"}']);
    expectRefusal(await flow.fetch("i1", "b1"), 404);
    expect((await flow.broker.journal.parts("/i1", "binding/")).items).toEqual([]);
  });

  test("what takes away is told the parameters of what it takes away", async () => {
    const given: unknown[] = [];
    const flow = await flowOn(wire, {
      service: {
        ...lab().service,
        async unbind(_work, { parameters, instanceParameters }) {
          given.push({ parameters, instanceParameters });
        },
        async deprovision(_work, { parameters }) {
          given.push({ parameters });
        },
      },
    });
    await flow.provision("i1", { ...sync, parameters: { size: 1 } });
    await flow.update("i1", { ...sync, parameters: { size: 2 } });
    await flow.bind("i1", "b1", { ...sync, parameters: { role: "reader" } });
    await flow.unbind("i1", "b1", sync);
    await flow.deprovision("i1", sync);
    const instance = { size: 2 };
    expect(given).toEqual([{ parameters: { role: "reader" }, instanceParameters: instance }, { parameters: instance }]);
  });

  test("UNB-03, UNB-04, UNB-05, UNB-14, B2: a repeat while it runs is a 202 with the same operation", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    laboratory.behave.unbind = hang;
    const first = await flow.unbind("i1", "b1");
    expect(first).toMatchObject({ status: 202, body: { operation: expect.stringMatching(/^.{1,10000}$/) } });
    const again = await unchanged(flow, () => flow.unbind("i1", "b1"));
    expect(again).toMatchObject({ status: 202, body: first.body });
  });

  test.each([
    ["UNB-06: service_id", "service_id"],
    ["UNB-07: plan_id", "plan_id"],
  ])("%s is needed in the query", async (_, field) => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    const query = new URLSearchParams({ service_id: ids.service, plan_id: ids.small });
    query.delete(field);
    for (const text of [`${query}`, `${query}&${field}=`]) {
      const answer = await unchanged(flow, () => flow.request("DELETE", `${bindingPath("i1", "b1")}?${text}`));
      expect(expectRefusal(answer, 400)).toContain(field);
    }
  });

  test("UNB-08: a binding that never was, is gone, or whose instance is gone is a 410", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    await flow.unbind("i1", "b1", sync);
    for (const [instance, binding] of [
      ["i1", "never"],
      ["i1", "b1"],
      ["never", "b1"],
    ] as const) {
      expectRefusal(await unchanged(flow, () => flow.unbind(instance, binding)), 410);
    }
    await flow.deprovision("i1", sync);
    expectRefusal(await flow.unbind("i1", "b1"), 410);
  });

  test("UNB-09: what is only unbound asynchronously says so", async () => {
    const flow = await flowOn(wire, lab({ async: { unbind: "require" } }));
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    expectRefusal(await unchanged(flow, () => flow.unbind("i1", "b1", sync)), 422, "AsyncRequired");
  });

  test("UNB-10, CONC-01: while the instance is being changed it is a ConcurrencyError", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    laboratory.behave.update = hang;
    await flow.update("i1", { parameters: { size: 2 } });
    expectRefusal(await unchanged(flow, () => flow.unbind("i1", "b1")), 422, "ConcurrencyError");
  });

  test("UNB-10: a bind of what is being unbound is a ConcurrencyError", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    laboratory.behave.unbind = hang;
    await flow.unbind("i1", "b1");
    expectRefusal(await unchanged(flow, () => flow.bind("i1", "b1")), 422, "ConcurrencyError");
  });

  test("UNB-11, UNB-12, B3: a delete during a bind halts it and undoes what it did; it does not appear later", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.bind = async (work) => {
      await work.saveState({ half: "granted" });
      await untilStopped(work);
    };
    const bind = await flow.bind("i1", "b1");
    await flow.advance();
    const unbind = await flow.unbind("i1", "b1");
    expect(unbind.status).toBe(202);
    expect(unbind.body.operation).not.toBe(bind.body.operation);
    await flow.advance();
    expect(laboratory.done.slice(1)).toEqual(["bind b1", 'unbind b1 {"half":"granted"} undoing grant']);
    expectRefusal(await flow.fetch("i1", "b1"), 404);
    expect((await flow.lastOperation("i1", { binding: "b1" })).body.state).toBe("succeeded");
    expect((await flow.lastOperation("i1", { binding: "b1", operation: bind.body.operation })).body.state).toBe(
      "failed",
    );
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
  });

  test("UNB-11: so it is when the function does not listen: what it returns later does not count", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const held = gate();
    laboratory.behave.bind = async () => {
      await held.wait();
      return { credentials: { too: "late" } };
    };
    await flow.bind("i1", "b1");
    await flow.advance();
    await flow.unbind("i1", "b1");
    held.open();
    await flow.advance(60_000);
    expectRefusal(await flow.fetch("i1", "b1"), 404);
    expect(laboratory.done.slice(1)).toEqual(["bind b1", "unbind b1 null undoing grant"]);
  });

  test("UNB-11: a bind that has not begun is ended without running", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, { journal: { laneConcurrency: 1, concurrency: 1 } });
    await ready(flow, "i1");
    await ready(flow, "i2");
    const held = gate();
    laboratory.behave.bind = held.wait;
    await flow.bind("i2", "blocks");
    await flow.bind("i1", "b1");
    await flow.unbind("i1", "b1");
    held.open();
    await flow.advance();
    expect(laboratory.done.filter((line) => line.includes("b1"))).toEqual(["unbind b1 null"]);
    expectRefusal(await flow.fetch("i1", "b1"), 404);
  });

  test("UNB-13: after a synchronous delete the bind is told as failed", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.bind = untilStopped;
    const bind = await flow.bind("i1", "b1");
    await flow.advance();
    expect((await flow.unbind("i1", "b1", sync)).status).toBe(200);
    const told = await flow.lastOperation("i1", { binding: "b1", operation: bind.body.operation });
    expect(told.body.state).toBe("failed");
  });

  test("UNB-15: a binding of another instance survives", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await ready(flow, "i2");
    await bound(flow, "i1", "b1");
    expectRefusal(await flow.unbind("i2", "b1", sync), 410);
    expect((await flow.fetch("i1", "b1")).status).toBe(200);
  });

  test("a service that is not the instance's is a 400, and the binding is kept", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    const answer = await unchanged(flow, () => flow.unbind("i1", "b1", { with: { service_id: "other" } }));
    expect(expectRefusal(answer, 400)).toContain("service_id");
    expect((await flow.unbind("i1", "b1", { ...sync, with: { plan_id: "retired" } })).status).toBe(200);
  });

  test("BFETCH-04: an unbind that fails does not bring a binding to life that could not be made", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const fail = () => {
      throw new Failed("the server is away");
    };
    Object.assign(laboratory.behave, { bind: fail, unbind: fail });
    await flow.bind("i1", "b1", sync);
    expectRefusal(await flow.unbind("i1", "b1", sync), 500);
    expectRefusal(await flow.fetch("i1", "b1"), 404);
    delete laboratory.behave.bind;
    await bound(flow, "i1", "b1");
  });

  test("an unbind that fails leaves the binding as it was, and can be repeated", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const { body } = await bound(flow, "i1", "b1");
    laboratory.behave.unbind = () => {
      throw new Failed("the server is away");
    };
    expect(expectRefusal(await flow.unbind("i1", "b1", sync), 500)).toBe("the server is away");
    expect((await flow.lastOperation("i1", { binding: "b1" })).body).toEqual({
      state: "failed",
      description: "the server is away",
    });
    expect((await flow.fetch("i1", "b1")).body.credentials).toEqual(body.credentials);
    delete laboratory.behave.unbind;
    expect((await flow.unbind("i1", "b1", sync)).status).toBe(200);
  });
});

describe.each(wires)("%s: more bindings at once than the record holds", (wire) => {
  test("UNB-11, UNB-10: the delete of a bind that waits far behind others never overtakes it", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, { journal: { concurrency: 16, laneConcurrency: 8 } });
    await ready(flow, "i1");
    const held = gate();
    laboratory.behave.bind = held.wait;
    const bindings = Array.from({ length: 150 }, (_, index) => `b${index}`);
    for (const binding of bindings) expect((await flow.bind("i1", binding)).status).toBe(202);
    const refused: string[] = [];
    for (const binding of ["b1", "b70", "b149"]) {
      const { status, body } = await flow.unbind("i1", binding);
      expect([202, 422]).toContain(status);
      if (status === 422) {
        expect(body.error).toBe("ConcurrencyError");
        refused.push(binding);
      }
    }
    expect([202, 422]).toContain((await flow.bind("i1", "b149")).status);
    held.open();
    await flow.advance(60_000);
    for (const binding of refused) expect((await flow.unbind("i1", binding, sync)).status).toBe(200);
    for (const binding of ["b1", "b70", "b149"]) {
      expectRefusal(await flow.fetch("i1", binding), 404);
      const about = laboratory.done.filter((line) => line.split(" ")[1] === binding).map((line) => line.split(" ")[0]);
      expect(about.at(-1)).toBe("unbind");
    }
    const left = bindings.filter((binding) => !["b1", "b70", "b149"].includes(binding));
    for (const binding of left) expect((await flow.fetch("i1", binding)).status).toBe(200);
    expect((await flow.broker.journal.read("/i1"))?.data).toMatchObject({ bindings: left.length });
  });
});

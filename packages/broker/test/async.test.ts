import { describe, expect, test } from "vitest";
import { Failed } from "../src/index.js";
import {
  bindBody,
  bindingPath,
  bound,
  everything,
  expectRefusal,
  flowOn,
  gate,
  hang,
  ids,
  instancePath,
  lab,
  plans,
  provisionBody,
  ready,
  unchanged,
  untilStopped,
  wires,
} from "./lab.js";

const sync = { acceptsIncomplete: false };
const verbs = ["provision", "update", "deprovision", "bind", "unbind"] as const;

describe.each(wires)("%s: synchronous and asynchronous", (wire) => {
  test("ASYNC-01, ASYNC-03: an operation that takes long is accepted at once, and not told as done before it is", async () => {
    const laboratory = lab();
    laboratory.behave.provision = hang;
    const flow = await flowOn(wire, laboratory);
    expect((await flow.provision("i1")).status).toBe(202);
    await flow.advance(600_000);
    expect((await flow.lastOperation("i1")).body.state).toBe("in progress");
  });

  test("ASYNC-02, ASYNC-09, ASYNC-04: without accepts_incomplete everything is done when it is answered: 201 or 200", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    const statuses = [
      (await flow.provision("i1", sync)).status,
      (await flow.update("i1", { ...sync, parameters: { size: 2 } })).status,
      (await flow.bind("i1", "b1", sync)).status,
      (await flow.unbind("i1", "b1", sync)).status,
      (await flow.deprovision("i1", sync)).status,
    ];
    expect(statuses).toEqual([201, 200, 201, 200, 200]);
    expect(laboratory.done.map((line) => line.split(" ")[0])).toEqual([
      "provision",
      "update",
      "bind",
      "unbind",
      "deprovision",
    ]);
  });

  test("ASYNC-04: accepts_incomplete=false is the same as none", async () => {
    const flow = await flowOn(wire, lab());
    const put = (value: string) =>
      flow.request("PUT", `${instancePath("i1")}?accepts_incomplete=${value}`, { body: provisionBody });
    expect((await put("false")).status).toBe(201);
  });

  test("ASYNC-05, ASYNC-11, PROV-19, UPD-10, BIND-14, UNB-09, DEL-09: what is only done asynchronously is refused with AsyncRequired, and nothing begins", async () => {
    const free = await flowOn(wire, lab());
    await ready(free, "i1");
    await bound(free, "i1", "b1");
    const laboratory = lab({ async: Object.fromEntries(verbs.map((verb) => [verb, "require"])) });
    await free.broker.offer([laboratory.service]);
    const asks = [
      () => free.provision("i2", sync),
      () => free.update("i1", { ...sync, parameters: { size: 2 } }),
      () => free.bind("i1", "b2", sync),
      () => free.unbind("i1", "b1", sync),
      () => free.deprovision("i1", sync),
    ];
    for (const ask of asks.slice(0, 4)) expectRefusal(await unchanged(free, ask), 422, "AsyncRequired");
    await free.unbind("i1", "b1");
    await free.advance();
    expectRefusal(await unchanged(free, () => free.deprovision("i1", sync)), 422, "AsyncRequired");
    expect(laboratory.done.map((line) => line.split(" ")[0])).toEqual(["unbind"]);
  });

  test("ASYNC-06, B4: with accepts_incomplete=true every verb is answered with 202 and an operation", async () => {
    const flow = await flowOn(wire, lab());
    const asks = [
      () => flow.provision("i1"),
      () => flow.update("i1", { parameters: { size: 2 } }),
      () => flow.bind("i1", "b1"),
      () => flow.unbind("i1", "b1"),
      () => flow.deprovision("i1"),
    ];
    for (const ask of asks) {
      const { status, body } = await ask();
      expect(status).toBe(202);
      expect(body.operation).toMatch(/./);
      await flow.advance();
    }
  });

  test("ASYNC-07, B4: a service that never answers early ignores accepts_incomplete", async () => {
    const flow = await flowOn(wire, lab({ async: { provision: "never" } }));
    expect((await flow.provision("i1")).status).toBe(201);
  });

  test("ASYNC-08, B4: the plan's rule wins over the service's, and that over the broker's", async () => {
    const laboratory = lab({
      async: { provision: "require" },
      plans: { small: { ...plans.small, async: { provision: "never" } }, large: plans.large },
    });
    const flow = await flowOn(wire, laboratory, { async: { provision: "never", bind: "require" } });
    expect((await flow.provision("i1", { plan: "small" })).status).toBe(201);
    expectRefusal(await flow.provision("i2", { ...sync, plan: "large" }), 422, "AsyncRequired");
    expectRefusal(await flow.bind("i1", "b1", sync), 422, "AsyncRequired");
  });

  test("ASYNC-10: accepts_incomplete that is neither true nor false is a 400 that names it", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const at = `service_id=${ids.service}&plan_id=${ids.small}`;
    for (const value of ["TRUE", "1", "yes", "null", "true%20"]) {
      for (const [method, path, body] of [
        ["PUT", instancePath("i2"), provisionBody],
        ["PATCH", instancePath("i1"), { service_id: ids.service, parameters: {} }],
        ["PUT", bindingPath("i1", "b1"), bindBody],
        ["DELETE", bindingPath("i1", "b1")],
        ["DELETE", instancePath("i1")],
      ] as const) {
        const ask = () =>
          flow.request(method, `${path}?${at}&accepts_incomplete=${value}`, body === undefined ? {} : { body });
        expect(expectRefusal(await unchanged(flow, ask), 400)).toContain("accepts_incomplete");
      }
    }
  });

  test("B4: answerWithin gives what is quick its final answer, and what is slow a 202", async () => {
    const laboratory = lab({ async: { provision: { mode: "prefer", answerWithinMs: 5_000 } } });
    const flow = await flowOn(wire, laboratory);
    expect((await flow.provision("quick")).status).toBe(201);
    laboratory.behave.provision = hang;
    const slow = flow.provision("slow");
    await flow.advance(5_000);
    expect((await slow).status).toBe(202);
    expect((await flow.lastOperation("slow")).body.state).toBe("in progress");
  });

  test("B4: answerWithin tells a failure in the answer itself", async () => {
    const laboratory = lab({ async: { provision: { mode: "prefer", answerWithinMs: 5_000 } } });
    laboratory.behave.provision = () => {
      throw new Failed("no room");
    };
    const flow = await flowOn(wire, laboratory);
    expect(expectRefusal(await flow.provision("i1"), 500)).toBe("no room");
  });

  test("B4, ORPH-03: a synchronous provision that outlives its time is cancelled, undone and answered with an error that makes the platform clean up", async () => {
    const laboratory = lab();
    laboratory.behave.provision = untilStopped;
    const flow = await flowOn(wire, laboratory);
    const asked = flow.provision("i1", sync);
    await flow.advance(50_000);
    expect(expectRefusal(await asked, 504)).toContain("accepts_incomplete=true");
    await flow.advance();
    expect(laboratory.done).toEqual(["provision i1", "deprovision i1 undoing create"]);
    expectRefusal(await flow.deprovision("i1"), 410);
  });

  test("B4: so is a bind; an update is cancelled and changes nothing", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    Object.assign(laboratory.behave, { bind: untilStopped, update: untilStopped });
    const binding = flow.bind("i1", "b1", sync);
    await flow.advance(50_000);
    expectRefusal(await binding, 504);
    await flow.advance();
    expect(laboratory.done).toEqual(["provision i1", "bind b1", "unbind b1 null undoing grant"]);
    const updating = flow.update("i1", { ...sync, plan: "large" });
    await flow.advance(50_000);
    expectRefusal(await updating, 504);
    await flow.advance();
    expect((await flow.fetch("i1")).body.plan_id).toBe(ids.small);
    expect((await flow.lastOperation("i1")).body.state).toBe("failed");
  });

  test("B4: a delete that outlives its time leaves an instance that can be deleted", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.deprovision = untilStopped;
    const deleting = flow.deprovision("i1", sync);
    await flow.advance(50_000);
    expectRefusal(await deleting, 504);
    await flow.advance();
    delete laboratory.behave.deprovision;
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
  });

  test("B4, PROV-04: a synchronous repeat that outlives its time does not end what an earlier request was promised", async () => {
    const laboratory = lab();
    const held = gate();
    laboratory.behave.provision = held.wait;
    const flow = await flowOn(wire, laboratory);
    const { body } = await flow.provision("i1");
    const repeat = flow.provision("i1", sync);
    await flow.advance(50_000);
    expectRefusal(await repeat, 422, "ConcurrencyError");
    held.open();
    await flow.advance();
    expect((await flow.lastOperation("i1", { operation: body.operation })).body.state).toBe("succeeded");
    expect(laboratory.done).toEqual(["provision i1"]);
    const gone = gate();
    laboratory.behave.deprovision = gone.wait;
    await flow.deprovision("i1");
    const again = flow.deprovision("i1", sync);
    await flow.advance(50_000);
    expectRefusal(await again, 422, "ConcurrencyError");
    gone.open();
    await flow.advance();
    expectRefusal(await flow.deprovision("i1", sync), 410);
  });

  test("B4: a synchronous bind that never got its turn leaves nothing behind", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, {
      syncTimeoutMs: 1_000,
      journal: { concurrency: 4, laneConcurrency: 2 },
    });
    await ready(flow, "i1");
    const held = gate();
    laboratory.behave.bind = held.wait;
    const asked = Promise.all(Array.from({ length: 100 }, (_, index) => flow.bind("i1", `b${index}`, sync)));
    await flow.advance(1_000);
    expect(new Set((await asked).map(({ status }) => status))).toEqual(new Set([504]));
    held.open();
    await flow.advance(60_000);
    for (let index = 0; index < 100; index++) expectRefusal(await flow.fetch("i1", `b${index}`), 404);
    const granted = laboratory.done.filter((line) => line.startsWith("bind")).map((line) => line.split(" ")[1]);
    const revoked = new Set(
      laboratory.done.filter((line) => line.startsWith("unbind")).map((line) => line.split(" ")[1]),
    );
    expect(granted.filter((binding) => !revoked.has(binding))).toEqual([]);
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
  });

  test("B4: the time that a platform is kept waiting can be chosen", async () => {
    const laboratory = lab();
    laboratory.behave.provision = untilStopped;
    const flow = await flowOn(wire, laboratory, { syncTimeoutMs: 1_000 });
    const asked = flow.provision("i1", sync);
    await flow.advance(1_000);
    expectRefusal(await asked, 504);
  });

  test("the deadline that a service sets ends what takes longer", async () => {
    const laboratory = lab({ deadlineMs: { provision: 60_000, bind: 1_000 } });
    laboratory.behave.provision = untilStopped;
    const flow = await flowOn(wire, laboratory);
    await flow.provision("i1");
    await flow.advance(59_999);
    expect((await flow.lastOperation("i1")).body.state).toBe("in progress");
    await flow.advance(1);
    expect((await flow.lastOperation("i1")).body).toMatchObject({
      state: "failed",
      description: expect.stringContaining("deadline"),
    });
    expect(JSON.stringify(await everything(flow))).toContain('"class":"deadline"');
  });

  test("an error that is not final is tried again, for as long as the platform waits", async () => {
    const laboratory = lab();
    let attempts = 0;
    laboratory.behave.provision = () => {
      if (++attempts < 3) throw new Error("not yet");
      return undefined;
    };
    const flow = await flowOn(wire, laboratory);
    const asked = flow.provision("i1", sync);
    await flow.advance(10_000);
    expect((await asked).status).toBe(201);
    expect(attempts).toBe(3);
    expect(laboratory.done).toEqual(["provision i1"]);
  });
});

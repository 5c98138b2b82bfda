import { describe, expect, test } from "vitest";
import { BrokerError, Failed } from "../src/index.js";
import {
  bindingPath,
  bound,
  expectRefusal,
  flowOn,
  gate,
  hang,
  ids,
  instancePath,
  lab,
  ready,
  untilStopped,
  wires,
} from "./lab.js";

describe.each(wires)("%s: last operation of an instance", (wire) => {
  test("LOP-01, LOP-02, LOP-03, B6: it tells in progress with the author's words, then succeeded", async () => {
    const laboratory = lab();
    const held = gate();
    laboratory.behave.provision = async (work) => {
      work.describe("copying the data, 40 %");
      await held.wait();
    };
    const flow = await flowOn(wire, laboratory);
    const { body } = await flow.provision("i1");
    const poll = () => flow.lastOperation("i1", { operation: body.operation });
    const first = await poll();
    expect(first.status).toBe(200);
    expect(first.body.state).toBe("in progress");
    expect(first.body.description).toMatch(/\S/);
    await flow.advance(1_000);
    expect((await poll()).body).toEqual({ state: "in progress", description: "copying the data, 40 %" });
    held.open();
    await flow.advance();
    expect((await poll()).body).toEqual({ state: "succeeded" });
  });

  test("B6: after success, the last words about progress are over: for every verb, on every poll, and in what the operator sees", async () => {
    const laboratory = lab();
    const saying = (percent: string) => async (work: { describe(text: string): void }) => {
      work.describe(`${percent}: still at it`);
      return undefined;
    };
    laboratory.behave.provision = saying("10 %");
    laboratory.behave.update = saying("20 %");
    laboratory.behave.bind = saying("30 %");
    laboratory.behave.unbind = saying("40 %");
    laboratory.behave.deprovision = saying("50 %");
    const flow = await flowOn(wire, laboratory);
    const ends = async (asked: Promise<{ readonly body: { readonly operation: string } }>, binding?: string) => {
      const { operation } = (await asked).body;
      await flow.advance(1_000);
      const of = binding === undefined ? {} : { binding };
      const [named, last] = [await flow.lastOperation("i1", { ...of, operation }), await flow.lastOperation("i1", of)];
      expect(last.body).toEqual(named.body);
      return named.body as unknown;
    };
    const told = { state: "succeeded" };
    expect(await ends(flow.provision("i1"))).toEqual(told);
    expect(await ends(flow.update("i1", { parameters: { size: 2 } }))).toEqual(told);
    const seen = await flow.broker.operator.instance({ platform: "", instance: "i1" });
    expect(seen.last_operation).toMatchObject({ verb: "update", state: "succeeded", description: null });
    expect(await ends(flow.bind("i1", "b1"), "b1")).toEqual(told);
    expect(await ends(flow.unbind("i1", "b1"), "b1")).toEqual(told);
    expect(await ends(flow.deprovision("i1"))).toEqual(told);
  });

  test("LOP-03, ERR-03: a description is never empty, also if the author's words are", async () => {
    const laboratory = lab();
    const held = gate();
    laboratory.behave.provision = async (work) => {
      work.describe(" ");
      await held.wait();
    };
    const flow = await flowOn(wire, laboratory);
    await flow.provision("i1");
    await flow.advance(1_000);
    expect((await flow.lastOperation("i1")).body.description).toMatch(/\S/);
    held.open();
    await flow.advance();
    expect((await flow.lastOperation("i1")).body).toEqual({ state: "succeeded" });
    const before = () => {
      throw new BrokerError("unprocessable", "");
    };
    expectRefusal(await (await flowOn(wire, lab({ hooks: { before } }))).provision("i2"), 422);
  });

  test("LOP-02, LOP-03, LOP-04, B6: a failure is told in the author's words, without words about the instance's use", async () => {
    const laboratory = lab();
    laboratory.behave.provision = () => {
      throw new Failed("the quota of the cluster is used up", { instanceUsable: false, updateRepeatable: false });
    };
    const flow = await flowOn(wire, laboratory);
    const { body } = await flow.provision("i1");
    await flow.advance();
    const answer = await flow.lastOperation("i1", { operation: body.operation });
    expect(answer.body).toEqual({ state: "failed", description: "the quota of the cluster is used up" });
  });

  test("LOP-03: a failure without words gets some", async () => {
    const laboratory = lab();
    laboratory.behave.provision = () => {
      throw new Failed("");
    };
    const flow = await flowOn(wire, laboratory);
    await flow.provision("i1");
    await flow.advance();
    expect((await flow.lastOperation("i1")).body.description).toMatch(/\S/);
  });

  test("LOP-05, B6: an instance that never was is a 404", async () => {
    const flow = await flowOn(wire, lab());
    expectRefusal(await flow.lastOperation("never"), 404);
    expectRefusal(await flow.lastOperation("never", { operation: "1-abc" }), 404);
  });

  test("LOP-06: an operation that is none of the instance's is a 400 that names it", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const answer = await flow.request("GET", `${instancePath("i1")}/last_operation?operation=%00`);
    expect(expectRefusal(answer, 400)).toContain("operation");
  });

  test("LOP-07, LOP-13, B6: after an asynchronous delete it is 200 succeeded; a 410 is never told of a create or update", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const { body } = await flow.deprovision("i1");
    await flow.advance();
    const answer = await flow.lastOperation("i1", { operation: body.operation });
    expect(answer).toMatchObject({ status: 200, body: { state: "succeeded" } });
    expect((await flow.lastOperation("i1")).body.state).toBe("succeeded");
    expectRefusal(await flow.lastOperation("i1", { operation: "1-unknown" }), 410);
  });

  test("LOP-07: a provision that the author refused is failed, not gone", async () => {
    const flow = await flowOn(
      wire,
      lab({
        provision: async () => {
          throw new BrokerError("forbidden", "not for you");
        },
      }),
    );
    const { body } = await flow.provision("i1");
    await flow.advance();
    const told = { state: "failed", description: "not for you" };
    expect((await flow.lastOperation("i1", { operation: body.operation })).body).toEqual(told);
    expect((await flow.lastOperation("i1")).body).toEqual(told);
    expectRefusal(await flow.lastOperation("i1", { operation: "1-unknown" }), 404);
    expectRefusal(await flow.deprovision("i1"), 410);
  });

  test("LOP-08, B6: Retry-After is told in seconds, as long as there is something to wait for", async () => {
    const laboratory = lab();
    const held = gate();
    laboratory.behave.provision = held.wait;
    const flow = await flowOn(wire, laboratory, { retryAfterSeconds: 7 });
    expect((await flow.provision("i1")).headers["retry-after"]).toBe("7");
    expect((await flow.lastOperation("i1")).headers["retry-after"]).toBe("7");
    held.open();
    await flow.advance();
    expect((await flow.lastOperation("i1")).headers["retry-after"]).toBeUndefined();
  });

  test("LOP-09: a final state is told again and again", async () => {
    const flow = await flowOn(wire, lab());
    const { body } = await ready(flow, "i1");
    const first = await flow.lastOperation("i1", { operation: body.operation });
    await flow.advance(600_000);
    expect((await flow.lastOperation("i1", { operation: body.operation })).body).toEqual(first.body);
    await flow.update("i1", { parameters: { size: 2 } });
    await flow.advance();
    expect((await flow.lastOperation("i1", { operation: body.operation })).body.state).toBe("succeeded");
  });

  test("LOP-10: service and plan need not be sent", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const hints = `service_id=${ids.service}&plan_id=${ids.small}`;
    expect((await flow.request("GET", `${instancePath("i1")}/last_operation`)).status).toBe(200);
    expect((await flow.request("GET", `${instancePath("i1")}/last_operation?${hints}`)).status).toBe(200);
  });

  test("LOP-11: after a plan change the old plan's id is as good as the new one's", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const { body } = await flow.update("i1", { plan: "large" });
    await flow.advance();
    for (const plan of [ids.small, ids.large]) {
      const query = `service_id=${ids.service}&plan_id=${plan}&operation=${body.operation}`;
      const answer = await flow.request("GET", `${instancePath("i1")}/last_operation?${query}`);
      expect(answer).toMatchObject({ status: 200, body: { state: "succeeded" } });
    }
  });

  test("LOP-12: an operation of someone else, or of nobody, is never told as this one's", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const other = await ready(flow, "i2");
    const binding = await flow.bind("i1", "b1");
    await flow.advance();
    const foreign = [
      "nonsense",
      "1-0",
      "999-abc",
      other.body.operation,
      binding.body.operation,
      "x".repeat(10_001),
      "__proto__",
    ];
    for (const operation of foreign) expectRefusal(await flow.lastOperation("i1", { operation }), 400);
  });

  test("LOP-12: each operation is told by its own name, while a later one runs", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    const first = await ready(flow, "i1");
    laboratory.behave.update = hang;
    const second = await flow.update("i1", { plan: "large" });
    expect((await flow.lastOperation("i1", { operation: first.body.operation })).body.state).toBe("succeeded");
    expect((await flow.lastOperation("i1", { operation: second.body.operation })).body.state).toBe("in progress");
    expect((await flow.lastOperation("i1")).body.state).toBe("in progress");
  });

  test("B6: instance_usable and update_repeatable of a failed update are told", async () => {
    const laboratory = lab();
    laboratory.behave.update = () => {
      throw new Failed("the disk is full", { instanceUsable: true, updateRepeatable: false });
    };
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    await flow.update("i1", { plan: "large" });
    await flow.advance();
    const { body } = await flow.lastOperation("i1");
    expect(body).toEqual({
      state: "failed",
      description: "the disk is full",
      instance_usable: true,
      update_repeatable: false,
    });
  });
});

describe.each(wires)("%s: last operation of a binding", (wire) => {
  test("BLOP-01, BLOP-02: it tells in progress, then succeeded", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const held = gate();
    laboratory.behave.bind = async (work) => {
      work.describe("waiting for the grant");
      await held.wait();
      return undefined;
    };
    const { body } = await flow.bind("i1", "b1");
    await flow.advance(1_000);
    const poll = () => flow.lastOperation("i1", { binding: "b1", operation: body.operation });
    expect(await poll()).toMatchObject({
      status: 200,
      body: { state: "in progress", description: "waiting for the grant" },
    });
    held.open();
    await flow.advance();
    expect((await poll()).body).toEqual({ state: "succeeded" });
  });

  test("BLOP-03: a binding that never was is a 404", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    expectRefusal(await flow.lastOperation("i1", { binding: "never" }), 404);
    expectRefusal(await flow.lastOperation("i1", { binding: "never", operation: "1-a" }), 404);
    expectRefusal(await flow.lastOperation("never", { binding: "b1" }), 404);
  });

  test("BLOP-04: an operation that is none of the binding's is a 400", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    expectRefusal(await flow.request("GET", `${bindingPath("i1", "b1")}/last_operation?operation=x`), 400);
  });

  test("BLOP-05, BLOP-07: after an asynchronous unbind it is 200 succeeded, and stays so; a 410 is told of no bind", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    const { body } = await flow.unbind("i1", "b1");
    await flow.advance();
    for (let time = 0; time < 2; time++) {
      expect((await flow.lastOperation("i1", { binding: "b1", operation: body.operation })).body.state).toBe(
        "succeeded",
      );
      expect((await flow.lastOperation("i1", { binding: "b1" })).body.state).toBe("succeeded");
      await flow.advance(600_000);
    }
    expectRefusal(await flow.lastOperation("i1", { binding: "b1", operation: "1-unknown" }), 410);
  });

  test("BLOP-05, BLOP-07: a bind that the author refused is failed, not gone and not unknown", async () => {
    const flow = await flowOn(
      wire,
      lab({
        bind: async () => {
          throw new BrokerError("forbidden", "not for you");
        },
      }),
    );
    await ready(flow, "i1");
    const { body } = await flow.bind("i1", "b1");
    await flow.advance();
    const told = { state: "failed", description: "not for you" };
    expect((await flow.lastOperation("i1", { binding: "b1", operation: body.operation })).body).toEqual(told);
    expect((await flow.lastOperation("i1", { binding: "b1" })).body).toEqual(told);
    expectRefusal(await flow.lastOperation("i1", { binding: "b1", operation: "1-unknown" }), 404);
    expectRefusal(await flow.unbind("i1", "b1"), 410);
  });

  test("BLOP-06: operations are told apart, so several of one instance can be polled at once", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const first = await flow.bind("i1", "b1");
    await flow.advance();
    laboratory.behave.bind = hang;
    const second = await flow.bind("i1", "b2");
    const state = async (binding: string, operation: string) =>
      (await flow.lastOperation("i1", { binding, operation })).body.state;
    expect(await state("b1", first.body.operation)).toBe("succeeded");
    expect(await state("b2", second.body.operation)).toBe("in progress");
    expect((await flow.lastOperation("i1")).body.state).toBe("succeeded");
  });

  test("BLOP-08: Retry-After is told while it runs", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, { retryAfterSeconds: 3 });
    await ready(flow, "i1");
    laboratory.behave.bind = hang;
    expect((await flow.bind("i1", "b1")).headers["retry-after"]).toBe("3");
    expect((await flow.lastOperation("i1", { binding: "b1" })).headers["retry-after"]).toBe("3");
  });

  test("BLOP-09: service and plan need not be sent", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await flow.bind("i1", "b1");
    await flow.advance();
    for (const query of ["", `?service_id=${ids.service}&plan_id=${ids.small}`]) {
      expect((await flow.request("GET", `${bindingPath("i1", "b1")}/last_operation${query}`)).status).toBe(200);
    }
  });

  test("BLOP-10: an unknown operation is a 400, one of another binding too", async () => {
    const flow = await flowOn(wire, lab());
    const instance = await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    const other = await flow.bind("i1", "b2");
    await flow.advance();
    for (const operation of ["nonsense", "1-0", instance.body.operation, other.body.operation]) {
      expectRefusal(await flow.lastOperation("i1", { binding: "b1", operation }), 400);
    }
  });

  test("UNB-12, UNB-13: an unbind during a bind is told as the last operation, and the bind as failed", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.bind = untilStopped;
    const bind = await flow.bind("i1", "b1");
    await flow.advance();
    laboratory.behave.unbind = hang;
    await flow.unbind("i1", "b1");
    await flow.advance();
    expect((await flow.lastOperation("i1", { binding: "b1" })).body.description).toContain("unbound");
    const told = await flow.lastOperation("i1", { binding: "b1", operation: bind.body.operation });
    expect(told.body.state).toBe("failed");
  });

  test("BLOP-01, BLOP-06: a binding that waits behind many others is in progress, whatever became of an earlier one of that id", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    await bound(flow, "i1", "again");
    await flow.unbind("i1", "again", { acceptsIncomplete: false });
    const held = gate();
    laboratory.behave.bind = held.wait;
    for (let count = 0; count < 70; count++) expect((await flow.bind("i1", `b${count}`)).status).toBe(202);
    const { operation } = (await flow.bind("i1", "again")).body;
    for (const asked of [{ binding: "again" }, { binding: "again", operation }])
      expect((await flow.lastOperation("i1", asked)).body.state).toBe("in progress");
    held.open();
    await flow.advance();
    expect((await flow.lastOperation("i1", { binding: "again" })).body.state).toBe("succeeded");
  });
});

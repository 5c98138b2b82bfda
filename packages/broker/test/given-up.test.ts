import { describe, expect, test } from "vitest";
import { Failed } from "../src/index.js";
import { bound, expectRefusal, flowOn, gate, hang, lab, ready, wires } from "./lab.js";

const sync = { acceptsIncomplete: false };
const soon = { syncTimeoutMs: 1_000 };
/** Beyond the time of a request; within the ten seconds that a function which does not listen has to stop. */
const late = 1_100;
const over = 30_000;

/** A request that outlives its time is cancelled; the author's function may go on for a while after that, and platforms ask again. */
describe.each(wires)("%s: asked again while what was given up has not ended", (wire) => {
  test("B4, UNB-01: a second unbind waits for the first, and the instance has no binding left then", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, soon);
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    laboratory.behave.unbind = hang;
    const first = flow.unbind("i1", "b1", sync);
    await flow.advance(late);
    expectRefusal(await first, 504);
    const begun = laboratory.done.length;
    laboratory.behave.unbind = () => undefined;
    expect((await flow.unbind("i1", "b1")).status).toBe(202);
    await flow.advance();
    expect(laboratory.done).toHaveLength(begun);
    await flow.advance(over);
    expect((await flow.lastOperation("i1", { binding: "b1" })).body.state).toBe("succeeded");
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
  });

  test("B4: a binding is as it was when the second unbind fails", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, soon);
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    laboratory.behave.unbind = hang;
    const first = flow.unbind("i1", "b1", sync);
    await flow.advance(late);
    await first;
    laboratory.behave.unbind = () => {
      throw new Failed("not today");
    };
    await flow.unbind("i1", "b1");
    await flow.advance(over);
    expect((await flow.fetch("i1", "b1")).status).toBe(200);
  });

  test("B4: an instance is as it was when the second deprovision fails", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, soon);
    await ready(flow, "i1");
    laboratory.behave.deprovision = hang;
    const first = flow.deprovision("i1", sync);
    await flow.advance(late);
    expectRefusal(await first, 504);
    const held = gate();
    laboratory.behave.deprovision = async () => {
      await held.wait();
      throw new Failed("not today");
    };
    const { operation } = (await flow.deprovision("i1")).body;
    await flow.advance(over);
    // The first has ended, the second runs: it is still being deleted.
    expectRefusal(await flow.provision("i1"), 422, "ConcurrencyError");
    expect((await flow.deprovision("i1")).body.operation).toBe(operation);
    held.open();
    await flow.advance();
    expect((await flow.lastOperation("i1")).body).toMatchObject({ state: "failed", description: "not today" });
    expect((await flow.fetch("i1")).status).toBe(200);
  });

  test("B4, B9: no new attempt begins beside a provision that has not stopped yet", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, soon);
    laboratory.behave.provision = hang;
    await flow.provision("i1");
    await flow.advance();
    const deleted = flow.deprovision("i1", sync);
    await flow.advance(late);
    expectRefusal(await deleted, 504);
    laboratory.behave.provision = () => undefined;
    expectRefusal(await flow.provision("i1"), 422, "ConcurrencyError");
    await flow.advance(over);
    await ready(flow, "i1");
    expect(laboratory.done).toEqual(["provision i1", "provision i1"]);
  });

  test("B4: nor beside a bind", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, soon);
    await ready(flow, "i1");
    laboratory.behave.bind = hang;
    await flow.bind("i1", "b1");
    await flow.advance();
    const deleted = flow.unbind("i1", "b1", sync);
    await flow.advance(late);
    expectRefusal(await deleted, 504);
    laboratory.behave.bind = () => undefined;
    expectRefusal(await flow.bind("i1", "b1"), 422, "ConcurrencyError");
    await flow.advance(over);
    await bound(flow, "i1", "b1");
    expect((await flow.unbind("i1", "b1", sync)).status).toBe(200);
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
  });

  test("B4, UPD-05: a repeated update is known after the end of the one before it", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, soon);
    await ready(flow, "i1");
    laboratory.behave.update = hang;
    const first = flow.update("i1", { ...sync, parameters: { size: 2 } });
    await flow.advance(late);
    expectRefusal(await first, 504);
    const { operation } = (await flow.update("i1", { parameters: { size: 3 } })).body;
    await flow.advance(over);
    const again = await flow.update("i1", { parameters: { size: 3 } });
    expect([again.status, again.body.operation]).toEqual([202, operation]);
  });
});

import { describe, expect, test } from "vitest";
import { Failed } from "../src/index.js";
import { bound, everything, expectRefusal, flowOn, gate, hang, lab, ready, untilStopped, wires } from "./lab.js";

const sync = { acceptsIncomplete: false };

describe.each(wires)("%s: orphans", (wire) => {
  test("ORPH-01, B4: a synchronous create that nobody waits for any more is removed by the broker itself", async () => {
    const laboratory = lab();
    laboratory.behave.provision = untilStopped;
    const flow = await flowOn(wire, laboratory, { syncTimeoutMs: 1_000 });
    const asked = flow.provision("i1", sync);
    await flow.advance(1_000);
    await asked;
    await flow.advance();
    expect(laboratory.done).toEqual(["provision i1", "deprovision i1 undoing create"]);
  });

  test("ORPH-02: a delete after a failed provision ends well, whether it waits or polls", async () => {
    const laboratory = lab();
    laboratory.behave.provision = () => {
      throw new Failed("no room");
    };
    const flow = await flowOn(wire, laboratory);
    for (const instance of ["i1", "i2"]) await flow.provision(instance);
    await flow.advance();
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
    expectRefusal(await flow.deprovision("i1", sync), 410);
    const { body } = await flow.deprovision("i2");
    await flow.advance();
    expect((await flow.lastOperation("i2", { operation: body.operation })).body.state).toBe("succeeded");
    expectRefusal(await flow.deprovision("i2"), 410);
  });

  test("ORPH-02: a delete after a failed bind ends well", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.bind = () => {
      throw new Failed("no more users");
    };
    await flow.bind("i1", "b1");
    await flow.advance();
    expect((await flow.unbind("i1", "b1", sync)).status).toBe(200);
    expectRefusal(await flow.unbind("i1", "b1", sync), 410);
  });

  test("ORPH-02: a delete of what was refused, or never arrived, is a 410", async () => {
    const flow = await flowOn(wire, lab());
    await flow.provision("i1", { parameters: { size: 0 } });
    expectRefusal(await flow.deprovision("i1"), 410);
    expectRefusal(await flow.deprovision("never"), 410);
    expectRefusal(await flow.unbind("never", "b1"), 410);
  });

  test("ORPH-03: a platform that gives up waiting and deletes leaves nothing behind, and nothing appears later", async () => {
    const laboratory = lab();
    const held = gate();
    laboratory.behave.provision = held.wait;
    const flow = await flowOn(wire, laboratory);
    const lost = flow.provision("i1", sync);
    await flow.advance();
    const deleted = flow.deprovision("i1", sync);
    await flow.advance();
    held.open();
    await flow.advance(60_000);
    expect((await deleted).status).toBe(200);
    expectRefusal(await lost, 422, "ConcurrencyError");
    expect(laboratory.done).toEqual(["provision i1", "deprovision i1 undoing create"]);
    expectRefusal(await flow.fetch("i1"), 404);
  });

  test("ORPH-04: after everything was deleted the broker holds nothing but its journal", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    for (const instance of ["i1", "i2", "i3"]) {
      await ready(flow, instance);
      await bound(flow, instance, "b1");
      await flow.unbind(instance, "b1", sync);
      await flow.deprovision(instance, sync);
    }
    const left = (await everything(flow)) as { data: { phase: string }; parts: unknown[]; labels: object }[];
    expect(left.map(({ data, parts, labels }) => [data.phase, parts, labels])).toEqual([
      ["gone", [], {}],
      ["gone", [], {}],
      ["gone", [], {}],
    ]);
    const made = laboratory.done.filter((line) => line.startsWith("provision") || line.startsWith("bind"));
    const undone = laboratory.done.filter((line) => line.startsWith("deprovision") || line.startsWith("unbind"));
    expect(undone).toHaveLength(made.length);
  });

  test("ORPH-04: after retention not even that", async () => {
    const retention = { succeededMs: 60_000, notesMs: 60_000, goneMs: 0 };
    const flow = await flowOn(wire, lab(), { journal: { retention } });
    await ready(flow, "i1");
    await flow.deprovision("i1", sync);
    await flow.advance(61_000);
    expect(await everything(flow)).toEqual([]);
    expectRefusal(await flow.deprovision("i1"), 410);
  });

  test("ORPH-02: a delete while the delete hangs is the same delete, and it ends when the author can", async () => {
    const laboratory = lab({ deadlineMs: { deprovision: 60_000 } });
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    laboratory.behave.deprovision = hang;
    const { body } = await flow.deprovision("i1");
    await flow.advance(70_000);
    expect((await flow.lastOperation("i1", { operation: body.operation })).body.state).toBe("failed");
    delete laboratory.behave.deprovision;
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
  });
});

import { systemClock } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { interposedStore } from "@osbert/journal/testing";
import { describe, expect, test } from "vitest";
import { createBroker, Failed } from "../src/index.js";
import type { TestBroker } from "../src/testing/index.js";
import { bound, expectRefusal, flowOn, gate, hang, ids, lab, plans, ready, unchanged, wires } from "./lab.js";

const sync = { acceptsIncomplete: false };

describe.each(wires)("%s: retired plans", (wire) => {
  test("B10: instances of a plan that is gone from the catalog stay fully operable; only new use is refused", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1", { parameters: { size: 1 } });
    await bound(flow, "i1", "b1");
    await flow.broker.offer([{ ...laboratory.service, plans: { large: plans.large } }], { retirePlansInUse: true });
    const old = { with: { plan_id: ids.small }, plan: "large" };
    const body = {
      service_id: ids.service,
      plan_id: ids.small,
      organization_guid: "an-organization",
      space_guid: "a-space",
    };
    const path = "/v2/service_instances/";
    expectRefusal(await flow.request("PUT", `${path}i2`, { body }), 400);
    const repeated = await flow.request("PUT", `${path}i1`, { body: { ...body, parameters: { size: 1 } } });
    expect(repeated.status).toBe(200);
    expect((await flow.fetch("i1")).body.plan_id).toBe(ids.small);
    expect((await flow.lastOperation("i1")).status).toBe(200);
    expect((await flow.update("i1", { ...sync, parameters: { size: 2 } })).status).toBe(200);
    expect((await flow.bind("i1", "b2", { ...sync, ...old })).status).toBe(201);
    expect((await flow.fetch("i1", "b1")).status).toBe(200);
    for (const binding of ["b1", "b2"])
      expect((await flow.unbind("i1", binding, { ...sync, ...old })).status).toBe(200);
    expect((await flow.deprovision("i1", { ...sync, ...old })).status).toBe(200);
  });

  test("B10: an instance can leave a retired plan, and cannot come back", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    await flow.broker.offer([{ ...laboratory.service, plans: { large: plans.large } }], { retirePlansInUse: true });
    expect((await flow.update("i1", { ...sync, plan: "large" })).status).toBe(200);
    const back = await flow.update("i1", { ...sync, plan: "large", with: { plan_id: ids.small } });
    expectRefusal(back, 400);
  });
});

describe.each(wires)("%s: a plan in use", (wire) => {
  test("B10: it is not dropped from the catalog unless that is confirmed; all stays as it was", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const without = [{ ...laboratory.service, plans: { large: plans.large } }];
    await expect(flow.broker.offer(without)).rejects.toThrow(/plan small of lab \(.*\) is gone/);
    expect((await flow.request("GET", "/v2/catalog")).body.services[0].plans).toHaveLength(3);
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
    await flow.broker.offer(without);
    expect((await flow.request("GET", "/v2/catalog")).body.services[0].plans).toHaveLength(1);
  });

  test("B10: nor is its id changed, nor that of its service", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const anotherId = [{ ...laboratory.service, plans: { ...plans, small: { ...plans.small, id: "another" } } }];
    const refusal = {
      name: "PlansInUseError",
      plans: [{ service: "lab", plan: "small", id: ids.small, newId: "another" }],
    };
    await expect(flow.broker.offer(anotherId)).rejects.toMatchObject(refusal);
    await expect(flow.broker.offer([{ ...laboratory.service, id: "another" }])).rejects.toThrow(/small of lab/);
    await flow.broker.offer(anotherId, { retirePlansInUse: true });
    expect((await flow.deprovision("i1", { ...sync, with: { plan_id: ids.small } })).status).toBe(200);
  });
});

describe.each(wires)("%s: a service that is not offered any more", (wire) => {
  test("B10: its instances and bindings can be deleted, by its own functions", async () => {
    const laboratory = lab();
    const other = lab({ id: "other", name: "other", plans: { one: { id: "one", description: "The only one" } } });
    const flow = await flowOn(wire, laboratory, { services: [laboratory.service, other.service] });
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    await flow.broker.offer([other.service], { retirePlansInUse: true });
    const old = { ...sync, with: { service_id: ids.service, plan_id: ids.small } };
    expectRefusal(await flow.bind("i1", "b2", old), 422);
    expect((await flow.unbind("i1", "b1", old)).status).toBe(200);
    expect((await flow.deprovision("i1", old)).status).toBe(200);
    expect(laboratory.done.slice(2)).toEqual(['unbind b1 {"user":"b1"}', "deprovision i1"]);
  });
});

describe("a plan whose instance cannot be read", () => {
  test("B10: it is in use all the same", async () => {
    const store = interposedStore(memoryStore(), async ({ method }, go) => {
      const answer = await go();
      if (method !== "find") return answer;
      return (answer as readonly object[]).map((record) => ({ ...record, state: "damaged" }));
    });
    const flow = await flowOn("handler", lab(), { store, journal: { clock: systemClock } });
    expect((await flow.provision("i1", sync)).status).toBe(201);
    await expect(flow.broker.offer([lab({ plans: { large: plans.large } }).service])).rejects.toThrow(/small of lab/);
  });
});

describe.each(wires)("%s: deleting what is not known", (wire) => {
  test("B14: it is a 410 unless the operator says otherwise, for instances and bindings apart", async () => {
    const plain = await flowOn(wire, lab());
    expectRefusal(await plain.deprovision("never"), 410);
    const instances = await flowOn(wire, lab(), { forceDeleteUnknown: { instances: true } });
    expect(await instances.deprovision("never")).toMatchObject({ status: 200, body: {} });
    expectRefusal(await instances.unbind("never", "b1"), 410);
    const bindings = await flowOn(wire, lab(), { forceDeleteUnknown: { bindings: true } });
    await ready(bindings, "i1");
    expect(await bindings.unbind("i1", "never")).toMatchObject({ status: 200, body: {} });
    expect((await bindings.unbind("never", "b1")).status).toBe(200);
    expectRefusal(await bindings.deprovision("never"), 410);
  });

  test("B14: what is known is deleted as ever", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, { forceDeleteUnknown: { instances: true, bindings: true } });
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    expect((await flow.unbind("i1", "b1", sync)).status).toBe(200);
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
    expect(laboratory.done.slice(-2)).toEqual(['unbind b1 {"user":"b1"}', "deprovision i1"]);
  });
});

describe.each(wires)("%s: cleaning up", (wire) => {
  const minute = 60_000;
  const retention = { succeededMs: minute, failedMs: 3 * minute, cancelledMs: minute, notesMs: minute };

  test("B15: finished operations go after their time, failed ones later, the instance stays", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, { journal: { retention } });
    const provision = await ready(flow, "i1");
    laboratory.behave.update = () => {
      throw new Failed("no");
    };
    const update = await flow.update("i1", { parameters: { size: 2 } });
    await flow.advance();
    const operations = async () =>
      new Set((await flow.broker.journal.entries("/i1")).flatMap(({ operation }) => operation ?? []));
    expect(await operations()).toEqual(new Set([provision.body.operation, update.body.operation]));
    await flow.advance(minute + 1_000);
    expect(await operations()).toEqual(new Set([update.body.operation]));
    await flow.advance(3 * minute);
    expect(await operations()).toEqual(new Set());
    expect((await flow.fetch("i1")).status).toBe(200);
    expect((await flow.lastOperation("i1")).body.state).toBe("failed");
    expectRefusal(await flow.lastOperation("i1", { operation: provision.body.operation }), 400);
  });

  test("B15: a running operation is never touched", async () => {
    const laboratory = lab();
    const held = gate();
    laboratory.behave.provision = held.wait;
    const flow = await flowOn(wire, laboratory, { journal: { retention } });
    const { body } = await flow.provision("i1");
    await flow.advance(10 * minute);
    expect((await flow.lastOperation("i1", { operation: body.operation })).body.state).toBe("in progress");
    held.open();
    await flow.advance();
    expect((await flow.fetch("i1")).status).toBe(200);
  });

  test("B15, B6: what is left of a deleted instance goes with its last operation", async () => {
    const flow = await flowOn(wire, lab(), { journal: { retention } });
    await ready(flow, "i1");
    const { body } = await flow.deprovision("i1");
    await flow.advance(minute - 1_000);
    expect((await flow.lastOperation("i1", { operation: body.operation })).body.state).toBe("succeeded");
    await flow.advance(2_000);
    expectRefusal(await flow.lastOperation("i1", { operation: body.operation }), 410);
    expectRefusal(await flow.lastOperation("i1"), 410);
    expectRefusal(await flow.lastOperation("never"), 404);
    expectRefusal(await flow.deprovision("i1"), 410);
    expect((await flow.provision("i1")).status).toBe(202);
  });

  test("B15, B6: much later nothing tells that it ever was", async () => {
    const flow = await flowOn(wire, lab(), { journal: { retention: { ...retention, goneMs: 10 * minute } } });
    await ready(flow, "i1");
    await flow.deprovision("i1");
    await flow.advance(2 * minute);
    expectRefusal(await flow.lastOperation("i1"), 410);
    await flow.advance(10 * minute);
    expect(await flow.broker.journal.read("/i1")).toBeUndefined();
    expectRefusal(await flow.lastOperation("i1"), 404);
  });

  test("B15: on schedules, by outcome, for instances and bindings apart, and not before they are old enough", async () => {
    const laboratory = lab();
    const cleanup = {
      instances: { succeeded: "0 0 * * * *", olderThanMs: 10 * minute },
      bindings: { all: "0 30 * * * *", olderThanMs: 0 },
    };
    const flow = await flowOn(wire, laboratory, { cleanup });
    const toTheHour = 60 * minute - (flow.broker.journal.now() % (60 * minute));
    await flow.advance(toTheHour + 55 * minute);
    // Five minutes before the hour.
    const provision = await ready(flow, "i1");
    const bind = await flow.bind("i1", "b1");
    await flow.advance();
    laboratory.behave.update = () => {
      throw new Failed("no");
    };
    const update = await flow.update("i1", { parameters: { size: 2 } });
    await flow.advance();
    const kept = async () => {
      const entries = await flow.broker.journal.entries("/i1");
      const operations = new Set(entries.flatMap(({ operation }) => operation ?? []));
      return [provision, bind, update].map(({ body }) => operations.has(body.operation));
    };
    expect(await kept()).toEqual([true, true, true]);
    await flow.advance(6 * minute);
    expect(await kept(), "five minutes old at the hour").toEqual([true, true, true]);
    await flow.advance(30 * minute);
    expect(await kept(), "half past").toEqual([true, false, true]);
    await flow.advance(30 * minute);
    expect(await kept(), "the next hour").toEqual([false, false, true]);
    await flow.advance(90 * minute);
    expect(await kept(), "nothing is said of failed ones").toEqual([false, false, true]);
    expect((await flow.fetch("i1", "b1")).status).toBe(200);
  });

  test.each([
    ["* * * * *", /cleanup.instances.all must be a cron pattern of six fields/],
    ["every night", /cleanup.instances.all must be a cron pattern of six fields/],
    ["0 0 0 30 2 *", /cleanup.instances.all must be .* there is no such time/],
  ])("B15: %s is refused at the start", (all, words) => {
    expect(() =>
      createBroker({
        stderr: "nothing",
        services: [lab().service],
        store: memoryStore(),
        cleanup: { instances: { all } },
      }),
    ).toThrow(words);
  });
});

describe.each(wires)("%s: a broker that is stopped and started", (wire) => {
  test("B1: what was accepted goes on in the next process", async () => {
    const { memoryStore } = await import("@osbert/journal/memory");
    const { manualClock } = await import("@osbert/journal/testing");
    const clock = manualClock();
    const store = memoryStore({ clock: clock.wallMs });
    const first = lab();
    first.behave.provision = hang;
    const before = await flowOn(wire, first, { store, journal: { clock } });
    const { body } = await before.provision("i1");
    await clock.advance(0);
    await before.broker.journal.kill();
    const second = lab();
    const after = await flowOn(wire, second, { store, journal: { clock } });
    await clock.advance(60_000);
    expect((await after.lastOperation("i1", { operation: body.operation })).body.state).toBe("succeeded");
    expect(first.done).toEqual(["provision i1"]);
    expect(second.done).toEqual([]);
    expect((await after.provision("i1")).status).toBe(200);
  });

  test("until it has started it is unavailable, and says when to ask again", async () => {
    const { createBroker } = await import("../src/index.js");
    const { memoryStore } = await import("@osbert/journal/memory");
    const broker = createBroker({ stderr: "nothing", services: [lab().service], store: memoryStore() });
    const { adapters } = await import("./lab.js");
    const handle = adapters[wire]?.(broker, { credentials: "none" });
    const header = (name: string) => (name === "x-broker-api-version" ? "2.17" : undefined);
    const answer = await handle?.({ method: "GET", url: "/v2/service_instances/i1", header, body: new Uint8Array() });
    expect(answer?.status).toBe(503);
    expect(answer?.headers["retry-after"]).toBe("1");
    expect(JSON.parse(String(answer?.body)).description).toMatch(/starting/);
  });
});

describe.each(wires)("%s: cleanup and what is still to be undone", (wire) => {
  const nightly = { all: "0 0 3 * * *", olderThanMs: 0 };
  const options = { cleanup: { instances: nightly, bindings: nightly } };
  const dayMs = 24 * 60 * 60 * 1_000;
  const entriesOf = (flow: TestBroker) => flow.broker.journal.entries("/i1", { limit: 1_000 });

  test("B1, B15: what a failed provision recorded is kept until it is undone, and goes then", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, options);
    laboratory.behave.provision = () => {
      throw new Failed("no room");
    };
    const { operation } = (await flow.provision("i1")).body;
    for (let days = 0; days < 5; days++) await flow.advance(dayMs);
    await flow.deprovision("i1");
    await flow.advance();
    expect(laboratory.done).toEqual(["provision i1", "deprovision i1 undoing create"]);
    for (let days = 0; days < 3; days++) await flow.advance(dayMs);
    expect((await entriesOf(flow)).filter((entry) => entry.operation === operation)).toEqual([]);
  });

  test("B1, B15: so is what a failed bind recorded; other bindings' history goes meanwhile", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory, options);
    await ready(flow, "i1");
    laboratory.behave.bind = () => {
      throw new Failed("no room");
    };
    const failed = (await flow.bind("i1", "b1")).body.operation;
    const undone = (await flow.bind("i1", "b2")).body.operation;
    await flow.advance();
    await flow.unbind("i1", "b2");
    for (let days = 0; days < 5; days++) await flow.advance(dayMs);
    const kept = async (id: string) => (await entriesOf(flow)).some((entry) => entry.operation === id);
    expect([await kept(failed), await kept(undone)]).toEqual([true, false]);
    await flow.unbind("i1", "b1");
    await flow.advance();
    expect(laboratory.done.at(-1)).toBe("unbind b1 null undoing grant");
    for (let days = 0; days < 3; days++) await flow.advance(dayMs);
    expect(await kept(failed)).toBe(false);
  });
});

describe.each(wires)("%s: errors inside", (wire) => {
  test("B13: what goes wrong inside is a 500 without any of its words, and the operator is told", async () => {
    const told: unknown[] = [];
    const laboratory = lab({
      hooks: {
        before() {
          throw new Error("password=hunter2");
        },
      },
    });
    const flow = await flowOn(wire, laboratory, { onError: (error) => void told.push(error) });
    const answer = await unchanged(flow, () => flow.provision("i1"));
    expect(expectRefusal(answer, 500)).not.toContain("hunter2");
    expect(told).toEqual([new Error("password=hunter2")]);
  });

  test("B13: the platform is answered, also if telling the operator fails", async () => {
    const before = () => {
      throw new Error("inside");
    };
    const onError = () => {
      throw new Error("the log is full");
    };
    const flow = await flowOn(wire, lab({ hooks: { before } }), { onError });
    expectRefusal(await flow.provision("i1"), 500);
  });

  test("B13: an answer of an author's own handler that is no JSON is the broker's fault, not the platform's", async () => {
    const told: unknown[] = [];
    const handlers = { fetchInstance: async () => ({ status: 200, body: { size: 1n } }) };
    const flow = await flowOn(wire, lab(), { handlers, onError: (error) => void told.push(error) });
    expectRefusal(await flow.fetch("i1"), 500);
    expect(told).toHaveLength(1);
  });
});

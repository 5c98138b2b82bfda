import type { Json, ResourceChange } from "@osbert/journal";
import { describe, expect, test } from "vitest";
import { Failed } from "../src/index.js";
import type { TestBroker } from "../src/testing/index.js";
import { everything, expectRefusal, flowOn, ids, lab } from "./lab.js";

/*
 * Records as 0.1.0 has stored them, taken from its memory: every phase had every field, also those that mean nothing in it. What was
 * stored then is read now, and goes on as if nothing had happened.
 */

const sync = { acceptsIncomplete: false };

const instance = {
  phase: "ready",
  phaseBefore: "failed",
  serviceId: ids.service,
  planId: ids.small,
  created: "OcjAYKQ5OuzUAXVRF5sL8T",
  updating: null,
  bindings: 0,
  last: { id: "1-2005cbd851934f7d88b8", verb: "provision", state: "succeeded" },
  removed: [],
};

const record = {
  serviceId: ids.service,
  planId: ids.small,
  organizationGuid: "an-organization",
  spaceGuid: "a-space",
  context: {},
  parameters: {},
  maintenanceVersion: null,
  dashboardUrl: null,
  dashboardTold: null,
  awaited: false,
  metadata: null,
  state: { host: "host-i1" },
  undo: [],
  identity: null,
};

const binding = {
  phase: "ready",
  phaseBefore: "failed",
  planId: ids.small,
  parameters: {},
  appGuid: null,
  bindResource: {},
  context: {},
  predecessor: null,
  created: "61UPkXe-0DiUJHvffgeVCh",
  binding: { credentials: { user: "b1", host: "host-i1" } },
  state: { user: "b1" },
  undo: [],
  last: { id: "4-1604b19eab1243c6a94c", verb: "bind", state: "succeeded" },
  identity: null,
};

const failedBind = { id: "4-8252907c5eab4d91957b", verb: "bind", state: "failed", description: "no user" };

interface Stored {
  readonly data?: object;
  readonly record?: object | null;
  readonly binding?: object;
  readonly accept?: ResourceChange["accept"];
}

/** A broker that finds an instance i1, and b1 where it is given, as the earlier version has left them. */
async function found(laboratory: ReturnType<typeof lab>, stored: Stored): Promise<TestBroker> {
  const flow = await flowOn("fetch", laboratory);
  const parts = {
    instance: (stored.record === undefined ? record : stored.record) as Json,
    ...(stored.binding && { "binding/b1": { ...binding, ...stored.binding } as Json }),
  };
  const change: ResourceChange = {
    data: { ...instance, ...stored.data } as Json,
    parts,
    labels: { service: ids.service, plan: ids.small },
    ...(stored.accept && { accept: stored.accept }),
  };
  const by = { actor: { type: "system", subject: "an earlier version" } } as const;
  await flow.broker.journal.transact("/i1", () => ({ result: null, change }), { by });
  return flow;
}

/** The phase that is stored now, with the fields that come and go with phases. */
async function stored(flow: TestBroker): Promise<unknown> {
  const [{ data, parts }] = (await everything(flow)) as [{ data: object; parts: { id: string; value: object }[] }];
  const told = ({ phase, phaseBefore, updating }: Record<string, unknown>) => ({ phase, phaseBefore, updating });
  const bound = parts.find(({ id }) => id === "binding/b1")?.value;
  return { instance: told(data as never), ...(bound && { binding: (bound as { phase: string }).phase }) };
}

describe("records of 0.1.0", () => {
  test("ready: the repeated PUT finds it, GET shows it, it is updated and deprovisioned", async () => {
    const flow = await found(lab(), {});
    expect((await flow.provision("i1")).status).toBe(200);
    expect((await flow.fetch("i1")).body).toMatchObject({ service_id: ids.service, plan_id: ids.small });
    expect((await flow.update("i1", { ...sync, parameters: { size: 2 } })).status).toBe(200);
    expect((await flow.fetch("i1")).body.parameters).toEqual({ size: 2 });
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
    expect((await flow.fetch("i1")).status).toBe(404);
  });

  test("ready, while an update is under way: its repeat is the same operation, another one waits", async () => {
    const laboratory = lab();
    laboratory.behave.update = () => new Promise(() => undefined);
    const flow = await found(laboratory, {});
    const { body } = await flow.update("i1", { parameters: { size: 2 } });
    await flow.advance();
    expect((await flow.update("i1", { parameters: { size: 2 } })).body).toEqual({ operation: body.operation });
    expectRefusal(await flow.update("i1", { parameters: { size: 3 } }), 422, "ConcurrencyError");
  });

  test("ready: after a deprovision that fails it is ready again", async () => {
    const laboratory = lab();
    laboratory.behave.deprovision = () => {
      throw new Failed("stuck");
    };
    const flow = await found(laboratory, {});
    expect((await flow.deprovision("i1", sync)).status).toBe(500);
    expect((await flow.fetch("i1")).status).toBe(200);
    expect(await stored(flow)).toEqual({ instance: { phase: "ready", updating: null } });
  });

  test("creating: its provision goes on to its end", async () => {
    const flow = await found(lab(), {
      data: { phase: "creating", last: null },
      accept: [{ kind: "provision", lane: ids.service }],
    });
    await flow.advance();
    expect((await flow.lastOperation("i1")).body).toEqual({ state: "succeeded" });
    expect((await flow.fetch("i1")).status).toBe(200);
  });

  test("failed: the same PUT is a new attempt, a DELETE undoes it", async () => {
    const last = { ...instance.last, state: "failed", description: "no room" };
    const again = await found(lab(), { data: { phase: "failed", last } });
    expect((await again.provision("i1", sync)).status).toBe(201);
    const undone = await found(lab(), { data: { phase: "failed", last } });
    expect((await undone.deprovision("i1", sync)).status).toBe(200);
    expectRefusal(await undone.deprovision("i1", sync), 410);
  });

  test.each([
    ["ready", 200],
    ["failed", 404],
  ])("deleting, %s before: when the deprovision fails it is that again", async (phaseBefore, status) => {
    const laboratory = lab();
    laboratory.behave.deprovision = () => {
      throw new Failed("stuck");
    };
    const flow = await found(laboratory, {
      data: { phase: "deleting", phaseBefore },
      accept: [{ kind: "deprovision", lane: ids.service, input: { identity: null } }],
    });
    expectRefusal(await flow.bind("i1", "b1"), 422, "ConcurrencyError");
    await flow.advance();
    expect((await flow.lastOperation("i1")).body).toMatchObject({ state: "failed", description: "stuck" });
    expect((await flow.fetch("i1")).status).toBe(status);
  });

  test("gone: the id is free", async () => {
    const last = { id: "4-b6", verb: "deprovision", state: "succeeded" };
    const flow = await found(lab(), { data: { phase: "gone", phaseBefore: "ready", last }, record: null });
    expectRefusal(await flow.deprovision("i1"), 410);
    expect((await flow.provision("i1", sync)).status).toBe(201);
  });

  test("a binding that is ready: its repeat has the credentials, GET shows them, it is unbound", async () => {
    const flow = await found(lab(), { data: { bindings: 1 }, binding: {} });
    expect(await flow.bind("i1", "b1")).toMatchObject({ status: 200, body: binding.binding });
    expect((await flow.fetch("i1", "b1")).body).toEqual({ ...binding.binding, parameters: {} });
    expect((await flow.unbind("i1", "b1", sync)).status).toBe(200);
    expect((await flow.fetch("i1", "b1")).status).toBe(404);
    expect((await flow.deprovision("i1", sync)).status).toBe(200);
  });

  test("a binding that is deleting: when the unbind fails its credentials are there again", async () => {
    const laboratory = lab();
    laboratory.behave.unbind = () => {
      throw new Failed("stuck");
    };
    const flow = await found(laboratory, {
      data: { bindings: 1 },
      binding: { phase: "deleting", phaseBefore: "ready" },
      accept: [{ kind: "unbind", part: "binding/b1", lane: ids.service, input: { identity: null } }],
    });
    expectRefusal(await flow.fetch("i1", "b1"), 422, "ConcurrencyError");
    await flow.advance();
    expect((await flow.fetch("i1", "b1")).body).toEqual({ ...binding.binding, parameters: {} });
    expect(await stored(flow)).toMatchObject({ binding: "ready" });
  });

  test("a binding that failed: the same PUT is a new attempt, a DELETE undoes it", async () => {
    const failed = { phase: "failed", binding: null, state: null, last: failedBind };
    const again = await found(lab(), { binding: failed });
    expect((await again.bind("i1", "b1", sync)).status).toBe(201);
    const undone = await found(lab(), { binding: failed });
    expectRefusal(await undone.fetch("i1", "b1"), 404);
    expect((await undone.unbind("i1", "b1", sync)).status).toBe(200);
  });
});

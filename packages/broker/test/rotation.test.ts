import { describe, expect, test } from "vitest";
import type { TestBroker } from "../src/testing/index.js";
import {
  bindBody,
  bindingPath,
  bound,
  expectRefusal,
  flowOn,
  gate,
  hang,
  ids,
  lab,
  plans,
  ready,
  unchanged,
  wires,
} from "./lab.js";

const sync = { acceptsIncomplete: false };

function rotate(flow: TestBroker, binding: string, predecessor: string, more: object = {}, query = "") {
  const body = { predecessor_binding_id: predecessor, ...more };
  return flow.request("PUT", `${bindingPath("i1", binding)}${query}`, { body });
}

describe.each(wires)("%s: rotation of bindings", (wire) => {
  test("ROT-02, ROT-03, ROT-05, ROT-06, ROT-10, B8: a successor is made from the predecessor's id alone, and both are valid", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const first = await bound(flow, "i1", "b1", { parameters: { role: "reader" } });
    const second = await rotate(flow, "b2", "b1");
    expect(second).toMatchObject({ status: 201, body: { credentials: { user: "b2", role: "reader" } } });
    expect(laboratory.done).toContain("bind b2 after b1");
    expect((await flow.fetch("i1", "b1")).body.credentials).toEqual(first.body.credentials);
    expect((await flow.fetch("i1", "b2")).body).toMatchObject({ ...second.body, parameters: { role: "reader" } });
  });

  test("B10: bindings of a retired plan can still be rotated", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    await flow.broker.offer([{ ...laboratory.service, plans: { large: plans.large } }], { retirePlansInUse: true });
    expect((await rotate(flow, "b2", "b1")).status).toBe(201);
  });

  test("ROT-06, BIND-03, BIND-04, BIND-05, BIND-06: it can be asynchronous, and repeats are as for bind", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    const held = gate();
    laboratory.behave.bind = held.wait;
    const first = await rotate(flow, "b2", "b1", {}, "?accepts_incomplete=true");
    expect(first).toMatchObject({ status: 202, body: { operation: expect.any(String) } });
    const again = await unchanged(flow, () => rotate(flow, "b2", "b1", {}, "?accepts_incomplete=true"));
    expect(again).toMatchObject({ status: 202, body: first.body });
    expectRefusal(await rotate(flow, "b2", "b1", { parameters: { role: "writer" } }), 409);
    held.open();
    await flow.advance();
    expect((await rotate(flow, "b2", "b1")).status).toBe(200);
    expect((await rotate(flow, "b2", "b1", bindBody)).status).toBe(200);
  });

  test("ROT-03: service and plan may be sent, and then have to be the instance's", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    expectRefusal(await rotate(flow, "b2", "b1", { service_id: "wrong" }), 400);
    expectRefusal(await rotate(flow, "b2", "b1", { plan_id: ids.large }), 400);
    expect((await rotate(flow, "b2", "b1", bindBody)).status).toBe(201);
  });

  test("ROT-04, B8: a predecessor that is unknown, another instance's, not ready or expired is a 400", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    await ready(flow, "i2");
    await bound(flow, "i2", "theirs");
    laboratory.behave.bind = () => ({ expiresAt: new Date(flow.clock.wallMs() + 60_000) });
    await bound(flow, "i1", "short");
    expect((await rotate(flow, "b2", "short")).status).toBe(201);
    laboratory.behave.bind = hang;
    await flow.bind("i1", "running");
    await flow.advance(60_000);
    for (const predecessor of ["unknown", "theirs", "running", "short"]) {
      const answer = await unchanged(flow, () => rotate(flow, "b9", predecessor));
      expect(expectRefusal(answer, 400)).toContain("predecessor_binding_id");
    }
    for (const wrong of [1, []]) {
      expect(expectRefusal(await rotate(flow, "b9", wrong as never), 400)).toContain("predecessor_binding_id");
    }
  });

  test("ROT-07: what is only bound asynchronously is only rotated so", async () => {
    const flow = await flowOn(wire, lab({ async: { bind: "require" } }));
    await ready(flow, "i1");
    await flow.bind("i1", "b1");
    await flow.advance();
    expectRefusal(await unchanged(flow, () => rotate(flow, "b2", "b1")), 422, "AsyncRequired");
    expect((await rotate(flow, "b2", "b1", {}, "?accepts_incomplete=true")).status).toBe(202);
  });

  test("ROT-08: a plan whose bindings do not rotate refuses it", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1", { plan: "large" });
    await bound(flow, "i1", "b1", { plan: "large" });
    expectRefusal(await unchanged(flow, () => rotate(flow, "b2", "b1")), 422);
  });

  test.each([
    ["ROT-09, B8: the predecessor", "b1", "b2"],
    ["ROT-09, B8: the successor", "b2", "b1"],
  ])("%s can go, and the other one stays", async (_, goes, stays) => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    await rotate(flow, "b2", "b1");
    expect((await flow.unbind("i1", goes, sync)).status).toBe(200);
    expect((await flow.fetch("i1", stays)).status).toBe(200);
    expectRefusal(await flow.fetch("i1", goes), 404);
  });

  test("ROT-10: application, bind resource, context and state of the predecessor carry over", async () => {
    const seen: unknown[] = [];
    const flow = await flowOn(wire, {
      service: {
        ...lab({ plans: { small: { ...plans.small, requiresApp: true } } }).service,
        async bind(_work, { binding, predecessor }) {
          seen.push({ ...binding, predecessor });
          return { state: { secret: binding.id } };
        },
      },
    });
    await ready(flow, "i1");
    const bind_resource = { app_guid: "a", route: "r" };
    await bound(flow, "i1", "b1", { with: { bind_resource, context: { platform: "cloudfoundry" } } });
    expect((await rotate(flow, "b2", "b1")).status).toBe(201);
    expect(seen[1]).toEqual({
      id: "b2",
      appGuid: "a",
      bindResource: bind_resource,
      context: { platform: "cloudfoundry" },
      predecessor: { id: "b1", state: { secret: "b1" } },
    });
  });

  test("B8: a rotation can be rotated, with expiry and renewal of its own", async () => {
    const laboratory = lab();
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    let days = 1;
    laboratory.behave.bind = () => {
      const day = 24 * 3_600_000;
      const now = flow.clock.wallMs();
      return { credentials: {}, expiresAt: new Date(now + ++days * day), renewBefore: new Date(now + day) };
    };
    await bound(flow, "i1", "b1");
    const second = await rotate(flow, "b2", "b1");
    const third = await rotate(flow, "b3", "b2");
    expect(third.body.metadata.expires_at > second.body.metadata.expires_at).toBe(true);
    expect(laboratory.done.slice(-2)).toEqual(["bind b2 after b1", "bind b3 after b2"]);
  });

  test.each([
    ["NUL", "a\u0000b", /NUL/],
    ["half of a surrogate pair", "\ud800", /surrogate/],
    ["more than an id has", "x".repeat(401), /400 bytes/],
  ])("ROT-04, ROB-01: a predecessor's id with %s is refused before it reaches the store", async (_, id, why) => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const refusal = expectRefusal(await unchanged(flow, () => rotate(flow, "b2", id)), 400);
    expect(refusal).toMatch(why);
    expect(refusal).toContain("predecessor_binding_id");
  });
});

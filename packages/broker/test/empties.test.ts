import { describe, expect, test } from "vitest";
import type { BindingInfo } from "../src/index.js";
import {
  bindBody,
  bindingPath,
  bound,
  expectRefusal,
  flowOn,
  ids,
  instancePath,
  lab,
  plans,
  provisionBody,
  ready,
  unchanged,
  wires,
} from "./lab.js";

describe.each(wires)("%s: what platforms send for nothing", (wire) => {
  test("Korifi's service key: an empty app_guid, also in bind_resource, is none", async () => {
    const seen: BindingInfo[] = [];
    const laboratory = lab({
      hooks: { before: async ({ binding }) => void (binding !== null && seen.push(binding)) },
    });
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1");
    const empty = { app_guid: "", bind_resource: { app_guid: "" }, parameters: null };
    await bound(flow, "i1", "b1", { with: empty });
    expect(seen).toEqual([{ id: "b1", appGuid: null, bindResource: {}, context: {} }]);
    // Left out or empty, it is the same request.
    expect((await flow.bind("i1", "b1", { acceptsIncomplete: false })).status).toBe(200);
  });

  test("an empty app_guid in bind_resource leaves the one beside it, and what else stands there", async () => {
    const seen: BindingInfo[] = [];
    const hooks = {
      before: async ({ binding }: { binding: BindingInfo | null }) => void (binding && seen.push(binding)),
    };
    const flow = await flowOn(wire, lab({ hooks }));
    await ready(flow, "i1");
    const bindResource = { app_guid: "", route: null, space_guid: "s", credential_client_id: "", app_annotations: {} };
    await bound(flow, "i1", "b1", { with: { app_guid: "a", bind_resource: bindResource as never } });
    expect(seen).toMatchObject([{ appGuid: "a", bindResource: { space_guid: "s", app_annotations: {} } }]);
    expect(Object.keys(seen[0]?.bindResource ?? {})).toEqual(["space_guid", "app_annotations"]);
  });

  test("a service that needs an application does not take an empty one for it", async () => {
    const flow = await flowOn(wire, lab({ plans: { small: { ...plans.small, requiresApp: true } } }));
    await ready(flow, "i1");
    const empty = { app_guid: "", bind_resource: { app_guid: "" } };
    expectRefusal(await unchanged(flow, () => flow.bind("i1", "b1", { with: empty })), 422, "RequiresApp");
  });

  test.each([{}, null, { version: "" }, { version: null }, { description: "", version: "" }])(
    "maintenance_info %j is none",
    async (maintenance) => {
      const laboratory = lab();
      const flow = await flowOn(wire, laboratory);
      const ask = { acceptsIncomplete: false, with: { maintenance_info: maintenance as never } };
      expect((await flow.provision("i1", ask)).status).toBe(201);
      expect((await flow.fetch("i1")).body).not.toHaveProperty("maintenance_info");
      expect((await unchanged(flow, () => flow.update("i1", ask))).status).toBe(200);
      expect((await flow.update("i1", { ...ask, parameters: { size: 2 } })).status).toBe(200);
      expect(laboratory.done).toEqual(["provision i1", 'update i1 small {"size":2}']);
    },
  );

  test("an empty plan_id in an update, as in its previous values, leaves the plan", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const body = {
      service_id: ids.service,
      plan_id: "",
      context: null,
      parameters: { size: 2 },
      previous_values: { plan_id: "", service_id: "", organization_id: "", space_id: "", maintenance_info: null },
    };
    expect((await flow.request("PATCH", instancePath("i1"), { body })).status).toBe(200);
    expect((await flow.fetch("i1")).body).toMatchObject({ plan_id: ids.small, parameters: { size: 2 } });
  });

  test("context: null and parameters: null are none", async () => {
    const flow = await flowOn(wire, lab());
    const nothing = { context: null, parameters: null, maintenance_info: null, previous_values: null };
    const put = { body: { ...provisionBody, ...nothing } };
    expect((await flow.request("PUT", instancePath("i1"), put)).status).toBe(201);
    const patch = { body: { service_id: ids.service, ...nothing } };
    expect((await unchanged(flow, () => flow.request("PATCH", instancePath("i1"), patch))).status).toBe(200);
    const bind = { body: { ...bindBody, ...nothing, bind_resource: null, app_guid: null, predecessor_binding_id: "" } };
    expect((await flow.request("PUT", bindingPath("i1", "b1"), bind)).status).toBe(201);
  });

  test("operation= asks for the last operation", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    for (const path of [instancePath("i1"), bindingPath("i1", "b1")]) {
      const answer = await flow.request("GET", `${path}/last_operation?operation=&service_id=&plan_id=`);
      expect(answer).toMatchObject({ status: 200, body: { state: "succeeded" } });
    }
  });

  test("a rotation that names its service and plan with empty texts leaves them to the predecessor", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    const body = { service_id: "", plan_id: "", predecessor_binding_id: "b1", app_guid: "" };
    expect((await flow.request("PUT", bindingPath("i1", "b2"), { body })).status).toBe(201);
  });

  test("accepts_incomplete= is no, and empty headers are none", async () => {
    const flow = await flowOn(wire, lab());
    const headers = { "x-broker-api-originating-identity": "", "x-broker-api-request-identity": "" };
    const put = { body: provisionBody, headers };
    expect((await flow.request("PUT", `${instancePath("i1")}?accepts_incomplete=`, put)).status).toBe(201);
  });

  test("what is needed is still needed: empty is not enough", async () => {
    const flow = await flowOn(wire, lab());
    for (const field of Object.keys(provisionBody)) {
      const put = { body: { ...provisionBody, [field]: "" } };
      expect(expectRefusal(await flow.request("PUT", instancePath("i1"), put), 400)).toContain(field);
    }
  });
});

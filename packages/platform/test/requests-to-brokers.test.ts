import { setTimeout as pause } from "node:timers/promises";
import { memoryStore } from "@osbert/journal/memory";
import type { Json, JsonObject } from "@osbert/protocol";
import { expect, onTestFinished, test } from "vitest";
import { type Asking, type InstanceView, openPlatform } from "../src/index.js";
import { type MisbehavingOptions, type SeenRequest, startMisbehaving } from "../src/testing/index.js";

// What the specification asks of a platform, seen where it counts: in the requests that reach a broker.

const credentials = { username: "platform", password: "secret" };
const anna: Asking = { by: { actor: { type: "user", subject: "anna" } } };
const ref = { space: "team", name: "db" };

async function wireLab(options: Partial<MisbehavingOptions> = {}) {
  const broker = await startMisbehaving({ credentials, ...options });
  onTestFinished(() => broker.stop());
  const platform = await openPlatform({ store: memoryStore() });
  await platform.start();
  onTestFinished(() => platform.stop());
  const authentication = { kind: "basic", ...credentials } as const;
  await platform.brokers.register("b", { url: broker.url, authentication }, anna);
  return {
    broker,
    instances: platform.instances,
    /** The requests of these calls, with their bodies. */
    sent: (...calls: readonly string[]): readonly (SeenRequest & { readonly json: JsonObject })[] =>
      broker
        .requests()
        .filter(({ call }) => call !== null && calls.includes(call))
        .map((request) => ({ ...request, json: JSON.parse(request.body || "{}") as JsonObject })),
    idle: async (): Promise<InstanceView> => {
      for (let tries = 0; tries < 3_000; tries++) {
        const view = await platform.instances.read(ref);
        if (view?.queue.length === 0) return view;
        await pause(10);
      }
      throw new Error("its queue never emptied");
    },
  };
}

const idOf = ({ path }: SeenRequest): string => path.split("/").at(-1) ?? "";

test("P-PROV-01, P-PROV-02, P-BIND-02, P-BIND-03, P-BIND-08: ids are new for each create, and bodies have what a broker must be told", async () => {
  const { instances, sent, idle } = await wireLab();
  for (let times = 0; times < 2; times++) {
    await instances.create(ref, { offering: "misbehaving", plan: "good" }, anna);
    await idle();
    await instances.bind(ref, { name: "app", appGuid: "app-guid-1" }, anna);
    await idle();
    await instances.delete(ref, { cascade: true }, anna);
    await idle();
  }
  const [provisions, binds] = [sent("provision"), sent("bind")];
  const ids = [...provisions, ...binds].map(idOf);
  expect(ids.every((id) => /^[A-Za-z0-9._~-]+$/.test(id))).toBe(true);
  expect(new Set(ids).size).toBe(4);
  const ofCatalog = { service_id: "service-misbehaving", plan_id: "plan-good" };
  for (const { json } of provisions)
    expect(json).toMatchObject({ ...ofCatalog, organization_guid: "team", space_guid: "team" });
  for (const { json } of binds) expect(json).toMatchObject({ ...ofCatalog, bind_resource: { app_guid: "app-guid-1" } });
});

test("P-ID-08, P-PROF-01: the context names the platform, and so does the identity beside it", async () => {
  const { instances, sent, idle } = await wireLab();
  await instances.create(ref, { offering: "misbehaving", plan: "good" }, anna);
  await instances.update(ref, { parameters: '{"size":1}' }, anna);
  await idle();
  await instances.bind(ref, { name: "app" }, anna);
  await idle();
  const requests = sent("provision", "update", "bind");
  expect(requests).toHaveLength(3);
  for (const { json, headers } of requests) {
    expect(json.context).toMatchObject({ platform: "osbert" });
    expect(headers["x-broker-api-originating-identity"]).toMatch(/^osbert [A-Za-z0-9+/=]+$/);
  }
});

test("P-UPD-04, P-UPD-05, P-UPD-10: an update names its service and what was before, and a dashboard stays that is not named again", async () => {
  const { instances, sent, idle } = await wireLab();
  await instances.create(ref, { offering: "misbehaving", plan: "good" }, anna);
  const before = await idle();
  expect(before.dashboardUrl).toMatch(/^http/);
  await instances.update(ref, { plan: "async" }, anna);
  await idle();
  await instances.update(ref, { parameters: '{"size":1}' }, anna);
  expect((await idle()).dashboardUrl).toBe(before.dashboardUrl);
  const [plan, parameters] = sent("update").map(({ json }) => json);
  expect(plan).toMatchObject({
    service_id: "service-misbehaving",
    plan_id: "plan-async",
    previous_values: { plan_id: "plan-good" },
  });
  expect(parameters).toMatchObject({ service_id: "service-misbehaving" });
  const previous = parameters?.previous_values;
  if (previous !== undefined) expect(previous).toMatchObject({ plan_id: "plan-async" });
});

test("P-PROV-06, P-UPD-06, P-BIND-07: a status that no table has is a failure, and nothing is deleted for an update", async () => {
  const { broker, instances, sent, idle } = await wireLab({
    rules: [
      { call: "provision", do: ["418", "good"] },
      { call: "update", do: ["418"] },
      { call: "bind", do: ["418"] },
    ],
  });
  await instances.create(ref, { offering: "misbehaving", plan: "good" }, anna);
  expect(await idle()).toMatchObject({ phase: "failed" });
  await instances.delete(ref, {}, anna);
  await idle();
  await instances.create(ref, { offering: "misbehaving", plan: "good" }, anna);
  await idle();
  await instances.update(ref, { parameters: '{"size":1}' }, anna);
  expect(await idle()).toMatchObject({ failures: [{ op: "update", class: "rejected" }] });
  await instances.bind(ref, { name: "app" }, anna);
  expect(await idle()).toMatchObject({ bindings: [{ name: "app", phase: "failed" }] });
  expect(sent("deprovision", "unbind")).toEqual([]);
  expect(broker.state().instances).toHaveLength(1);
});

test("E10-28: an instance that could not be created can be deleted, without a call", async () => {
  const { instances, sent, idle } = await wireLab();
  await instances.create(ref, { offering: "misbehaving", plan: "403" }, anna);
  expect(await idle()).toMatchObject({ phase: "failed" });
  await instances.delete(ref, {}, anna);
  expect(await idle()).toMatchObject({ phase: "gone" });
  expect(sent("deprovision")).toEqual([]);
});

test("P-DEL-01: bindings are deleted before their instance", async () => {
  const { instances, sent, idle } = await wireLab({ rules: [{ call: "unbind", do: { slow: { polls: 0 } } }] });
  await instances.create(ref, { offering: "misbehaving", plan: "good" }, anna);
  await idle();
  await instances.bind(ref, { name: "one" }, anna);
  await instances.bind(ref, { name: "two" }, anna);
  await idle();
  await instances.delete(ref, { cascade: true }, anna);
  await idle();
  expect(sent("unbind", "deprovision").map(({ call }) => call)).toEqual(["unbind", "unbind", "deprovision"]);
});

const offering = (id: string, name: string, schema?: Json): Json => ({
  ...{ id, name, description: "A service", bindable: true },
  plans: [
    {
      ...{ id: `plan-of-${id}`, name: "small", description: "A plan" },
      ...(schema !== undefined && { schemas: { service_instance: { create: { parameters: schema } } } }),
    },
  ],
});

test("P-CAT-03, P-CAT-04: what has another id is something else, and names differ by the size of their letters", async () => {
  const value = { services: [offering("one", "db"), offering("two", "DB"), offering("three", "other")] };
  const { instances, sent, idle } = await wireLab({ catalog: { value } });
  await instances.create(ref, { offering: "DB", plan: "small" }, anna);
  await idle();
  expect(sent("provision").map(({ json }) => [json.service_id, json.plan_id])).toEqual([["two", "plan-of-two"]]);
  await expect(instances.create({ ...ref, name: "x" }, { offering: "Db", plan: "small" }, anna)).rejects.toThrow();
  await expect(instances.create({ ...ref, name: "x" }, { offering: "db", plan: "Small" }, anna)).rejects.toThrow();
});

test("P-SCHEMA-01: parameters are held against schemas of draft 4", async () => {
  const schema = {
    $schema: "http://json-schema.org/draft-04/schema#",
    type: "object",
    // As draft 4 has it; a later draft would not take a boolean here.
    properties: { size: { type: "number", minimum: 3, exclusiveMinimum: true } },
  };
  const { instances, sent, idle } = await wireLab({
    catalog: { value: { services: [offering("one", "db", schema)] } },
  });
  const wanted = { offering: "db", plan: "small" };
  await expect(instances.create(ref, { ...wanted, parameters: '{"size":3}' }, anna)).rejects.toMatchObject({
    code: "preflight-failed",
  });
  await instances.create(ref, { ...wanted, parameters: '{"size":4}' }, anna);
  await idle();
  expect(sent("provision")).toHaveLength(1);
});

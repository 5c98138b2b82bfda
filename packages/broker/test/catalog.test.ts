import { checkCatalog, type ServicePlan } from "@osbert/protocol";
import { describe, expect, test } from "vitest";
import { CatalogBuilder } from "../src/catalog/catalog-builder.js";
import { buildCatalog, CatalogError, defineService, type Service } from "../src/index.js";
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
  wires,
} from "./lab.js";

const catalogOf = (service: Service) => JSON.parse(buildCatalog([service]).body).services[0];

function faultsOf(...services: readonly unknown[]): readonly string[] {
  try {
    buildCatalog(services as readonly Service[]);
    return [];
  } catch (error) {
    if (!(error instanceof CatalogError)) throw error;
    return error.findings.map(({ path }) => path);
  }
}

describe.each(wires)("%s: the catalog", (wire) => {
  test("CAT-01, CAT-02: it is a 200 with the services, and keeps every rule", async () => {
    const flow = await flowOn(wire, lab());
    const { status, body } = await flow.request("GET", "/v2/catalog");
    expect(status).toBe(200);
    expect(body.services).toHaveLength(1);
    expect(checkCatalog(body)).toEqual([]);
  });

  test("CAT-02: a broker without services has an empty one", async () => {
    const flow = await flowOn(wire, lab(), { services: [] });
    expect((await flow.request("GET", "/v2/catalog")).body).toEqual({ services: [] });
  });

  test("CAT-33: ids stay the same from one query to the next", async () => {
    const flow = await flowOn(wire, lab());
    const first = await flow.request("GET", "/v2/catalog");
    await ready(flow, "i1");
    expect((await flow.request("GET", "/v2/catalog")).body).toEqual(first.body);
    expect(first.body.services[0]).toMatchObject({
      id: ids.service,
      plans: [{ id: ids.small }, { id: ids.large }, {}],
    });
  });

  test("CAT-35: a platform that knows the catalog gets a 304 without a body", async () => {
    const flow = await flowOn(wire, lab());
    const first = await flow.request("GET", "/v2/catalog");
    const etag = first.headers.etag ?? "";
    expect(etag).toMatch(/^"[^"]+"$/);
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const again = await flow.request("GET", "/v2/catalog", { headers: { "if-none-match": known } });
      expect(again).toMatchObject({ status: 304, body: undefined, headers: { etag } });
      // A cache would take these for those of the body that it keeps.
      for (const ofBody of ["content-type", "content-length"]) expect(again.headers).not.toHaveProperty(ofBody);
    }
    const other = await flow.request("GET", "/v2/catalog", { headers: { "if-none-match": '"other"' } });
    expect(other.status).toBe(200);
  });

  test("CAT-36, CAT-35: services can be added and removed, and the etag tells", async () => {
    const flow = await flowOn(wire, lab());
    const { headers } = await flow.request("GET", "/v2/catalog");
    await flow.broker.offer([lab({ plans: { large: plans.large } }).service]);
    const after = await flow.request("GET", "/v2/catalog", { headers: { "if-none-match": headers.etag ?? "" } });
    expect(after.status).toBe(200);
    expect(after.body.services[0].plans).toHaveLength(1);
  });

  test("CAT-36: a catalog that breaks a rule is not offered; the old one stays", async () => {
    const flow = await flowOn(wire, lab());
    await expect(flow.broker.offer([lab({ name: "" }).service])).rejects.toThrow(CatalogError);
    expect((await flow.request("GET", "/v2/catalog")).body.services[0].name).toBe("lab");
  });
});

describe.each(wires)("%s: the catalog's flags hold", (wire) => {
  test("CAT-27, CAT-38, BIND-34, B7: bindable of the plan wins over that of the service", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1", { plan: "sealed" });
    expectRefusal(await flow.bind("i1", "b1", { plan: "sealed" }), 422);
    const closed = await flowOn(wire, lab({ bindable: false, plans: { open: { ...plans.large, bindable: true } } }));
    await ready(closed, "i1");
    await bound(closed, "i1", "b1");
  });

  test("CAT-29, CAT-39, UPD-08, B7: plan_updateable of the plan wins over that of the service", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1", { plan: "sealed" });
    expectRefusal(await flow.update("i1", { plan: "small" }), 422);
    const fixed = lab({
      planUpdateable: false,
      plans: { small: { ...plans.small, planUpdateable: true }, large: plans.large },
    });
    const other = await flowOn(wire, fixed);
    await ready(other, "i1");
    expect((await other.update("i1", { plan: "large", acceptsIncomplete: false })).status).toBe(200);
    expectRefusal(await other.update("i1", { plan: "small", acceptsIncomplete: false }), 422);
  });

  test("CAT-13, B7: instances of a service that does not say so cannot be fetched", async () => {
    const flow = await flowOn(wire, lab({ instancesRetrievable: false }));
    await ready(flow, "i1");
    expectRefusal(await flow.fetch("i1"), 404);
  });

  test("CAT-14, B7: the same for bindings", async () => {
    const flow = await flowOn(wire, lab({ bindingsRetrievable: false }));
    await ready(flow, "i1");
    await bound(flow, "i1", "b1");
    expectRefusal(await flow.fetch("i1", "b1"), 404);
  });

  test("CAT-15, UPD-17, B7: updates of the context alone need allow_context_updates", async () => {
    const context = { platform: "cloudfoundry", instance_name: "renamed" };
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    expectRefusal(await flow.update("i1", { with: { context } }), 422);
    const open = await flowOn(wire, lab({ allowContextUpdates: true }));
    await ready(open, "i1");
    expect((await open.update("i1", { with: { context }, acceptsIncomplete: false })).status).toBe(200);
  });

  test("CAT-28, ROT-01, ROT-08, B7: only bindings of plans with binding_rotatable rotate", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1", { plan: "large" });
    await bound(flow, "i1", "b1", { plan: "large" });
    const rotate = { body: { predecessor_binding_id: "b1" } };
    expectRefusal(await flow.request("PUT", bindingPath("i1", "b2"), rotate), 422);
    expectRefusal(
      await flow.request("DELETE", `${bindingPath("i1", "b2")}?service_id=${ids.service}&plan_id=${ids.large}`),
      410,
    );
  });

  test("CAT-26, CAT-31: free and maximum_polling_duration are told as they were given", async () => {
    const flow = await flowOn(
      wire,
      lab({ plans: { paid: { ...plans.large, free: false, maximumPollingDuration: 600 } } }),
    );
    const { body } = await flow.request("GET", "/v2/catalog");
    expect(body.services[0].plans[0]).toMatchObject({ free: false, maximum_polling_duration: 600 });
  });

  test("UNB-16: a service that nobody can bind still answers deletes of bindings", async () => {
    const flow = await flowOn(wire, {
      service: defineService({ id: ids.service, name: "plain", description: "x", plans: { small: plans.large } }),
    });
    await ready(flow, "i1");
    expectRefusal(
      await flow.request("PUT", bindingPath("i1", "b1"), { body: { ...bindBody, plan_id: ids.large } }),
      422,
    );
    expectRefusal(await flow.unbind("i1", "b1"), 410);
    expectRefusal(await flow.request("PUT", bindingPath("i2", "b1"), { body: provisionBody }), 404);
    expectRefusal(
      await flow.request("PATCH", instancePath("i1"), { body: { service_id: ids.service, parameters: {} } }),
      422,
    );
  });
});

describe("a catalog from services", () => {
  test("CAT-12, CAT-38: what has a bind function is bindable, unless it says otherwise", () => {
    expect(catalogOf(lab().service).bindable).toBe(true);
    expect(catalogOf(lab({ bindable: false }).service).bindable).toBe(false);
    const plain = defineService({ id: "s", name: "s", description: "s", plans: { a: { id: "p", description: "p" } } });
    expect(catalogOf(plain)).toMatchObject({
      bindable: false,
      bindings_retrievable: false,
      instances_retrievable: true,
    });
  });

  test("CAT-26, CAT-27, CAT-29: every plan says what holds for it, also where the author or the service said nothing", () => {
    const flagsOf = (service: Service) =>
      catalogOf(service).plans.map(({ name, free, bindable, plan_updateable }: ServicePlan) => [
        name,
        { free, bindable, plan_updateable },
      ]);
    expect(flagsOf(lab({ plans: { ...plans, paid: { ...plans.large, id: "paid", free: false } } }).service)).toEqual([
      ["small", { free: true, bindable: true, plan_updateable: true }],
      ["large", { free: true, bindable: true, plan_updateable: true }],
      ["sealed", { free: true, bindable: false, plan_updateable: false }],
      ["paid", { free: false, bindable: true, plan_updateable: true }],
    ]);
    const plain = defineService({ id: "s", name: "s", description: "s", plans: { a: { id: "p", description: "p" } } });
    expect(flagsOf(plain)).toEqual([["a", { free: true, bindable: false, plan_updateable: false }]]);
  });

  test("CAT-10, CAT-11, CAT-16, CAT-17, CAT-25: what the author says of a service and its plans is told", () => {
    const service = lab({
      tags: ["a"],
      requires: ["syslog_drain"],
      metadata: { displayName: "Lab" },
      dashboardClient: { id: "d", secret: "s", redirect_uri: "https://x" },
      plans: { a: { id: "p", description: "p", metadata: { bullets: ["one"] } } },
    }).service;
    expect(catalogOf(service)).toMatchObject({
      tags: ["a"],
      requires: ["syslog_drain"],
      metadata: { displayName: "Lab" },
      dashboard_client: { id: "d", secret: "s", redirect_uri: "https://x" },
      plans: [{ id: "p", name: "a", metadata: { bullets: ["one"] } }],
    });
  });

  test("CAT-03, CAT-07, CAT-20, CAT-24: a broker does not start with a catalog that breaks a rule, and names all of them", () => {
    expect(faultsOf(lab({ name: "", id: "", plans: { a: { id: "", description: "" } } }).service)).toEqual([
      "services[0].name",
      "services[0].id",
      "services[0].plans[0].id",
      "services[0].plans[0].description",
    ]);
    expect(() => buildCatalog([lab({ name: "" }).service])).toThrow(/services\[0\]\.name must not be empty/);
  });

  test("CAT-04, CAT-08, CAT-21: two services must not share names or ids", () => {
    expect(faultsOf(lab().service, lab().service)).toEqual([
      "services[1].id",
      "services[1].name",
      "services[1].plans[0].id",
      "services[1].plans[1].id",
      "services[1].plans[2].id",
    ]);
  });

  test("CAT-19: a service without plans is told so, not with a crash", () => {
    expect(faultsOf({ id: "s", name: "s", description: "s" })).toEqual(["services[0].plans"]);
    expect(faultsOf(lab({ plans: {} }).service)).toEqual(["services[0].plans"]);
  });

  test("CAT-38, CAT-39: what is promised without a function behind it is a fault", () => {
    const base = { id: "s", name: "s", description: "s" };
    const plan = { id: "p", description: "p" };
    expect(faultsOf({ ...base, bindable: true, plans: { plan } })).toEqual(["services[0]"]);
    expect(faultsOf({ ...base, plans: { plan: { ...plan, bindable: true } } })).toEqual(["services[0]"]);
    expect(faultsOf({ ...base, planUpdateable: true, plans: { plan } })).toEqual(["services[0]"]);
    expect(faultsOf({ ...base, plans: { plan: { ...plan, update: { type: "object" } } } })).toEqual(["services[0]"]);
  });

  test("CAT-37: ids need not be GUIDs, but must be such that every store keeps them", () => {
    expect(faultsOf(lab({ id: "x".repeat(256) }).service)).toEqual([]);
    expect(faultsOf(lab({ id: "x".repeat(257) }).service)).toEqual(["services[0].id"]);
    expect(faultsOf(lab({ id: "a\u0000b" }).service)).toEqual(["services[0].id"]);
    expect(faultsOf(lab({ plans: { a: { id: "ü".repeat(129), description: "p" } } }).service)).toEqual([
      "services[0].plans[0].id",
    ]);
  });

  test("CAT-06, CAT-34: advice does not keep a broker from starting, but is told", () => {
    const { warnings } = buildCatalog([lab({ name: "my service", description: "x".repeat(300) }).service]);
    expect(warnings.map(({ path }) => path).sort()).toEqual(["services[0].description", "services[0].name"]);
  });
});

test("CAT-35: a catalog of services that were in others before, or were checked before, has the same bytes and the same ETag", () => {
  const make = (id: string, description = "A test") =>
    defineService({ ...{ id, name: id, description }, plans: { small: { id: `${id}-small`, description: "One" } } });
  const [one, two] = [make("one"), make("two")];
  const first = buildCatalog([one, two]);
  const changed = buildCatalog([one, make("two", "Another")]);
  const anew = buildCatalog([make("one"), make("two", "Another")], { areChecked: true });
  expect(changed.etag).not.toBe(first.etag);
  expect([anew.etag, anew.body]).toEqual([changed.etag, changed.body]);
  expect(new TextDecoder().decode(anew.bytes)).toBe(anew.body);
  expect(anew.services.get("two")?.offering).toEqual(JSON.parse(anew.body).services[1]);
  expect(() => buildCatalog([one, two, make("two")])).toThrow(
    /services\[2\]\.plans\[0\]\.id the id "two-small" is used by/,
  );
});

test("CAT-35: catalogs share the pieces that are the same in both, and each goes on answering what it did", () => {
  const make = (id: string, description = "A test") =>
    defineService({ ...{ id, name: id, description }, plans: { small: { id: `${id}-small`, description: "One" } } });
  const services = Array.from({ length: 1_000 }, (_, index) => make(`service-${index}`));
  const builder = new CatalogBuilder({ areChecked: true });
  const first = builder.build(services);
  const { body } = first;
  expect(JSON.parse(body).services.map(({ id }: { id: string }) => id)).toEqual(services.map(({ id }) => id));
  const second = builder.build(services.with(500, make("service-500", "Another")));
  const known = new Set(first.pieces.pieces.map(({ buffer }) => buffer));
  // All but its own block; what stands before and behind the services is made for each.
  expect(second.pieces.pieces.filter(({ buffer }) => !known.has(buffer))).toHaveLength(3);
  expect(first.body === body).toBe(true);
  expect(second.body === body.replace(/("service-500","description":")A test/, "$1Another")).toBe(true);
  const offerings = [...second.services.values()].map(({ offering }) => offering);
  expect(offerings).toEqual(JSON.parse(second.body).services);
});

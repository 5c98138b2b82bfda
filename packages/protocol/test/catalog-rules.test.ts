import { describe, expect, test } from "vitest";
import { checkCatalog, isBindable, isPlanUpdateable, isSemanticVersion } from "../src/index.js";

type Fields = Record<string, unknown>;

const schema = { $schema: "http://json-schema.org/draft-04/schema#", type: "object" };

function plan(fields: Fields = {}): Fields {
  return { id: "p-1", name: "small", description: "A plan", ...fields };
}

function service(fields: Fields = {}): Fields {
  return { id: "s-1", name: "database", description: "A service", bindable: true, plans: [plan()], ...fields };
}

/** "error services[0].id" for each finding. */
function findings(...services: readonly unknown[]): readonly string[] {
  return checkCatalog({ services }).map(({ level, path }) => `${level} ${path}`);
}

const without = (fields: Fields, name: string): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([field]) => field !== name));

describe("the whole", () => {
  test("CAT-01, CAT-02: a catalog is an object with a list of services, which may be empty", () => {
    expect(checkCatalog({ services: [] })).toEqual([]);
    expect(findings(service())).toEqual([]);
    for (const wrong of [null, undefined, [], "x", 1, true]) {
      expect(checkCatalog(wrong)).toMatchObject([{ level: "error", path: "" }]);
    }
    for (const services of [undefined, null, {}, "x"]) {
      expect(checkCatalog({ services })).toMatchObject([{ level: "error", path: "services" }]);
    }
    expect(findings(null, [], "x")).toEqual(["error services[0]", "error services[1]", "error services[2]"]);
  });

  test("every finding says in words what is wrong", () => {
    const { message } = checkCatalog({ services: [service({ id: "" })] })[0] ?? {};
    expect(message).toBe("must not be empty");
    expect(checkCatalog({ services: [service({ id: 1 })] })[0]?.message).toBe("must be a text");
    expect(checkCatalog({ services: [without(service(), "id")] })[0]?.message).toBe("is missing");
  });

  test("all faults are found, not only the first one", () => {
    const broken = service({
      name: "",
      bindable: "yes",
      plans: [plan({ id: 7 }), plan({ id: "p-2", name: "b", free: 1 })],
    });
    expect(findings(broken)).toEqual([
      "error services[0].name",
      "error services[0].bindable",
      "error services[0].plans[0].id",
      "error services[0].plans[1].free",
    ]);
  });

  test("P-EXT-01: unknown fields are no fault", () => {
    expect(findings(service({ x_mine: {}, plans: [plan({ x_mine: [] })] }))).toEqual([]);
  });
});

describe("services", () => {
  test.each([
    ["CAT-03: a service has a name", "name"],
    ["CAT-07: a service has an id", "id"],
    ["CAT-09: a service has a description", "description"],
  ])("%s, a text that is not empty", (_, field) => {
    for (const wrong of ["", 1, null, {}, []]) {
      expect(findings(service({ [field]: wrong }))).toEqual([`error services[0].${field}`]);
    }
    expect(findings(without(service(), field))).toEqual([`error services[0].${field}`]);
  });

  test("CAT-04, CAT-05: names of services are unique, and compared with their case", () => {
    const other = (name: string) => service({ id: "s-2", name, plans: [plan({ id: "p-2" })] });
    expect(findings(service(), other("database"))).toEqual(["error services[1].name"]);
    expect(findings(service(), other("Database"))).toEqual([]);
  });

  test("CAT-08: ids of services are unique", () => {
    const other = service({ name: "other", plans: [plan({ id: "p-2" })] });
    expect(new Set(findings(service(), other))).toEqual(new Set(["error services[1].id"]));
  });

  test("CAT-10: tags are a list of texts", () => {
    expect(findings(service({ tags: ["a", "b"] }))).toEqual([]);
    expect(findings(service({ tags: "a" }))).toEqual(["error services[0].tags"]);
    expect(findings(service({ tags: ["a", 1] }))).toEqual(["error services[0].tags[1]"]);
  });

  test("CAT-11, CAT-40: requires takes the three permissions and nothing else", () => {
    expect(findings(service({ requires: ["syslog_drain", "route_forwarding", "volume_mount"] }))).toEqual([]);
    expect(findings(service({ requires: ["root"] }))).toEqual(["error services[0].requires[0]"]);
    expect(findings(service({ requires: "syslog_drain" }))).toEqual(["error services[0].requires"]);
  });

  test("CAT-12, CAT-38: bindable has to be said", () => {
    expect(findings(without(service(), "bindable"))).toEqual(["error services[0].bindable"]);
    expect(findings(service({ bindable: "true" }))).toEqual(["error services[0].bindable"]);
    expect(findings(service({ bindable: false }))).toEqual([]);
  });

  test.each([
    ["CAT-13: instances_retrievable", "instances_retrievable"],
    ["CAT-14: bindings_retrievable", "bindings_retrievable"],
    ["CAT-15: allow_context_updates", "allow_context_updates"],
    ["CAT-18, CAT-39: plan_updateable", "plan_updateable"],
  ])("%s is true or false", (_, field) => {
    for (const value of [true, false]) expect(findings(service({ [field]: value }))).toEqual([]);
    for (const wrong of ["true", 1, null]) {
      expect(findings(service({ [field]: wrong }))).toEqual([`error services[0].${field}`]);
    }
  });

  test("CAT-16: metadata is an object", () => {
    expect(findings(service({ metadata: { anything: [1] } }))).toEqual([]);
    for (const wrong of ["x", [], null])
      expect(findings(service({ metadata: wrong }))).toEqual(["error services[0].metadata"]);
  });

  test("CAT-17: a dashboard client has an id and a secret", () => {
    expect(findings(service({ dashboard_client: { id: "i", secret: "s", redirect_uri: "https://x" } }))).toEqual([]);
    expect(findings(service({ dashboard_client: { id: "", redirect_uri: 1 } }))).toEqual([
      "error services[0].dashboard_client.id",
      "error services[0].dashboard_client.secret",
      "error services[0].dashboard_client.redirect_uri",
    ]);
    expect(findings(service({ dashboard_client: "x" }))).toEqual(["error services[0].dashboard_client"]);
  });

  test("CAT-19: a service has at least one plan", () => {
    for (const plans of [[], undefined, {}, "x"])
      expect(findings(service({ plans }))).toEqual(["error services[0].plans"]);
    expect(findings(service({ plans: [1] }))).toEqual(["error services[0].plans[0]"]);
  });
});

describe("plans", () => {
  test.each([
    ["CAT-20: a plan has an id", "id"],
    ["CAT-22: a plan has a name", "name"],
    ["CAT-24: a plan has a description", "description"],
  ])("%s, a text that is not empty", (_, field) => {
    for (const wrong of ["", 1, null]) {
      expect(findings(service({ plans: [plan({ [field]: wrong })] }))).toEqual([`error services[0].plans[0].${field}`]);
    }
    expect(findings(service({ plans: [without(plan(), field)] }))).toEqual([`error services[0].plans[0].${field}`]);
  });

  test("CAT-21: ids of plans are unique over all services", () => {
    expect(findings(service(), service({ id: "s-2", name: "other" }))).toEqual(["error services[1].plans[0].id"]);
    expect(findings(service({ plans: [plan(), plan({ name: "b" })] }))).toEqual(["error services[0].plans[1].id"]);
  });

  test("CAT-23, CAT-05: names of plans are unique in their service, with their case", () => {
    expect(findings(service({ plans: [plan(), plan({ id: "p-2" })] }))).toEqual(["error services[0].plans[1].name"]);
    expect(findings(service({ plans: [plan(), plan({ id: "p-2", name: "Small" })] }))).toEqual([]);
    const other = service({ id: "s-2", name: "other", plans: [plan({ id: "p-2" })] });
    expect(findings(service(), other)).toEqual([]);
  });

  test("CAT-25: metadata is an object", () => {
    for (const wrong of ["x", [], null]) {
      expect(findings(service({ plans: [plan({ metadata: wrong })] }))).toEqual([
        "error services[0].plans[0].metadata",
      ]);
    }
  });

  test.each([
    ["CAT-26: free", "free"],
    ["CAT-27: bindable", "bindable"],
    ["CAT-28, ROT-01: binding_rotatable", "binding_rotatable"],
    ["CAT-29, CAT-39: plan_updateable", "plan_updateable"],
  ])("%s is true or false", (_, field) => {
    for (const value of [true, false]) expect(findings(service({ plans: [plan({ [field]: value })] }))).toEqual([]);
    for (const wrong of ["true", 0, null]) {
      expect(findings(service({ plans: [plan({ [field]: wrong })] }))).toEqual([`error services[0].plans[0].${field}`]);
    }
  });

  test("CAT-27, CAT-29, P-CAT-07: the plan's word wins over the service's", () => {
    const offering = { id: "s", name: "s", description: "s", bindable: true, plan_updateable: true, plans: [] };
    const small = { id: "p", name: "p", description: "p" };
    expect(isBindable(offering, small)).toBe(true);
    expect(isBindable(offering, { ...small, bindable: false })).toBe(false);
    expect(isBindable({ ...offering, bindable: false }, { ...small, bindable: true })).toBe(true);
    expect(isPlanUpdateable(offering, small)).toBe(true);
    expect(isPlanUpdateable(offering, { ...small, plan_updateable: false })).toBe(false);
    const silent = { id: "s", name: "s", description: "s", bindable: true, plans: [] };
    expect(isPlanUpdateable(silent, small)).toBe(false);
    expect(isPlanUpdateable(silent, { ...small, plan_updateable: true })).toBe(true);
  });

  test("CAT-30: schemas are an object", () => {
    for (const wrong of ["x", [], null]) {
      expect(findings(service({ plans: [plan({ schemas: wrong })] }))).toEqual(["error services[0].plans[0].schemas"]);
    }
  });

  test("CAT-31: maximum_polling_duration is a whole number of seconds", () => {
    expect(findings(service({ plans: [plan({ maximum_polling_duration: 3600 })] }))).toEqual([]);
    for (const wrong of ["60", 1.5, -1, null, Number.NaN]) {
      expect(findings(service({ plans: [plan({ maximum_polling_duration: wrong })] }))).toEqual([
        "error services[0].plans[0].maximum_polling_duration",
      ]);
    }
  });

  test("CAT-32, MAINT-01: maintenance_info has a semantic version", () => {
    const at = "services[0].plans[0].maintenance_info";
    const check = (info: unknown) => findings(service({ plans: [plan({ maintenance_info: info })] }));
    expect(check({ version: "2.1.1+abcdef" })).toEqual([]);
    expect(check("1.0.0")).toEqual([`error ${at}`]);
    expect(check({})).toEqual([`error ${at}.version`]);
    expect(check({ version: "" })).toEqual([`error ${at}.version`]);
    expect(check({ version: "latest" })).toEqual([`error ${at}.version`]);
  });

  test("MAINT-01: semantic versions are told from what looks like them", () => {
    for (const good of [
      "0.0.0",
      "1.2.3",
      "1.0.0-alpha.1",
      "1.0.0-0A.is.legal",
      "1.0.0+20130313144700",
      "2.1.1-rc.1+b",
    ]) {
      expect(isSemanticVersion(good), good).toBe(true);
    }
    for (const bad of [
      "1",
      "1.2",
      "v1.2.3",
      "01.2.3",
      "1.2.3-",
      "1.2.3-01",
      "1.2.3+",
      "1.2.3.4",
      " 1.2.3",
      "1.2.3-a..b",
    ]) {
      expect(isSemanticVersion(bad), bad).toBe(false);
    }
  });

  test("MAINT-02: the description of maintenance is a text", () => {
    const check = (description: unknown) =>
      findings(service({ plans: [plan({ maintenance_info: { version: "1.0.0", description } })] }));
    expect(check("A restart")).toEqual([]);
    expect(check(1)).toEqual(["error services[0].plans[0].maintenance_info.description"]);
  });
});

describe("schemas", () => {
  const at = "services[0].plans[0].schemas";
  const check = (schemas: unknown) => findings(service({ plans: [plan({ schemas })] }));
  const creating = (parameters: unknown) => check({ service_instance: { create: { parameters } } });

  test("SCHEMA-01: each level is an object", () => {
    const input = { parameters: schema };
    expect(check({ service_instance: { create: input, update: input }, service_binding: { create: input } })).toEqual(
      [],
    );
    expect(check({ service_instance: {}, service_binding: { create: {} } })).toEqual([]);
    expect(check({ service_instance: [], service_binding: "x" })).toEqual([
      `error ${at}.service_instance`,
      `error ${at}.service_binding`,
    ]);
    expect(check({ service_instance: { create: 1, update: [] } })).toEqual([
      `error ${at}.service_instance.create`,
      `error ${at}.service_instance.update`,
    ]);
    expect(creating("x")).toEqual([`error ${at}.service_instance.create.parameters`]);
  });

  test("SCHEMA-02: each schema says which draft it is", () => {
    expect(creating({ type: "object" })).toEqual([`error ${at}.service_instance.create.parameters.$schema`]);
    expect(creating({ $schema: "" })).toEqual([`error ${at}.service_instance.create.parameters.$schema`]);
  });

  test("SCHEMA-03: references stay inside the schema", () => {
    const inside = { ...schema, definitions: { a: {} }, properties: { a: { $ref: "#/definitions/a" } } };
    expect(creating(inside)).toEqual([]);
    for (const $ref of ["https://example.com/a", "other.json", "file:///etc/passwd"]) {
      expect(creating({ ...schema, properties: { a: { items: [{ $ref }] } } })).toEqual([
        `error ${at}.service_instance.create.parameters.properties.a.items[0].$ref`,
      ]);
    }
    const named = { ...schema, properties: { $ref: { type: "string" } } };
    expect(creating(named)).toEqual([]);
  });

  test("SCHEMA-04: a schema has at most 64 kB", () => {
    const sized = (bytes: number) => {
      const empty = JSON.stringify({ ...schema, title: "" }).length;
      return { ...schema, title: "x".repeat(bytes - empty) };
    };
    expect(creating(sized(65_536))).toEqual([]);
    expect(creating(sized(65_537))).toEqual([`error ${at}.service_instance.create.parameters`]);
    expect(creating({ ...schema, title: "ü".repeat(40_000) })).toEqual([
      `error ${at}.service_instance.create.parameters`,
    ]);
  });

  test("SCHEMA-03: a schema that is too deep to look into is a fault, not a crash", () => {
    let deep: Fields = {};
    for (let level = 0; level < 5_000; level++) deep = { not: deep };
    expect(creating({ ...schema, ...deep })[0]).toMatch(/^error/);
  });

  test("SCHEMA-06: a schema for bindings of a plan that cannot be bound is of no use", () => {
    const schemas = { service_binding: { create: { parameters: schema } } };
    expect(findings(service({ plans: [plan({ schemas })] }))).toEqual([]);
    const warning = [`warning ${at}.service_binding.create.parameters`];
    expect(findings(service({ plans: [plan({ schemas, bindable: false })] }))).toEqual(warning);
    expect(findings(service({ bindable: false, plans: [plan({ schemas })] }))).toEqual(warning);
  });
});

describe("advice", () => {
  test("CAT-06: names that cannot be typed at a command line are advised against", () => {
    for (const name of ["my service", "ünï", "-", "a_b", "a/b"]) {
      expect(findings(service({ name, plans: [plan({ name })] }))).toEqual([
        "warning services[0].name",
        "warning services[0].plans[0].name",
      ]);
    }
    expect(findings(service({ name: "My-Service.2" }))).toEqual([]);
  });

  test("CAT-34: more than 255 characters are advised against", () => {
    expect(findings(service({ description: "x".repeat(255) }))).toEqual([]);
    expect(findings(service({ description: "x".repeat(256) }))).toEqual(["warning services[0].description"]);
  });

  test("PROF-09, PROF-12: well-known names in a service's metadata have the types that platforms expect", () => {
    const good = {
      displayName: "A",
      imageUrl: "https://x/i.png",
      longDescription: "B",
      providerDisplayName: "C",
      documentationUrl: "https://x",
      supportUrl: "https://y",
      shareable: true,
    };
    expect(findings(service({ metadata: good }))).toEqual([]);
    for (const name of Object.keys(good)) {
      expect(findings(service({ metadata: { [name]: 1 } }))).toEqual([`warning services[0].metadata.${name}`]);
    }
  });

  test("PROF-10: the same for a plan", () => {
    const metadata = { displayName: 1, bullets: ["a", 1] };
    expect(findings(service({ plans: [plan({ metadata })] }))).toEqual([
      "warning services[0].plans[0].metadata.displayName",
      "warning services[0].plans[0].metadata.bullets",
    ]);
  });

  test("PROF-11: a cost has an amount by currency and a unit", () => {
    const at = "services[0].plans[0].metadata.costs";
    const check = (costs: unknown) => findings(service({ plans: [plan({ metadata: { costs } })] }));
    expect(check([{ amount: { usd: 99.0, eur: 49 }, unit: "MONTHLY" }])).toEqual([]);
    expect(check({})).toEqual([`error ${at}`]);
    expect(check([{}])).toEqual([`error ${at}[0].amount`, `error ${at}[0].unit`]);
    expect(check([{ amount: { usd: "99" }, unit: "" }])).toEqual([`error ${at}[0].amount.usd`, `error ${at}[0].unit`]);
    expect(check(["free"])).toEqual([`error ${at}[0]`]);
  });
});

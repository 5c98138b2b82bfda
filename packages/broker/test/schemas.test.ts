import { describe, expect, test } from "vitest";
import { buildCatalog, CatalogError, type Schema } from "../src/index.js";
import { expectRefusal, flowOn, ids, lab, ready, unchanged, wires } from "./lab.js";

const drafts = {
  "draft-04": "http://json-schema.org/draft-04/schema#",
  "draft-06": "http://json-schema.org/draft-06/schema#",
  "draft-07": "http://json-schema.org/draft-07/schema#",
  "2019-09": "https://json-schema.org/draft/2019-09/schema",
  "2020-12": "https://json-schema.org/draft/2020-12/schema",
};

/** Says the same in each draft, with the keyword that came with it. */
const telling: Record<keyof typeof drafts, Schema> = {
  "draft-04": { properties: { n: { type: "integer", minimum: 0, exclusiveMinimum: true } } },
  "draft-06": { properties: { n: { type: "integer", exclusiveMinimum: 0 } } },
  // biome-ignore lint/suspicious/noThenProperty: it is JSON Schema's word.
  "draft-07": { properties: { n: { if: { type: "integer" }, then: { exclusiveMinimum: 0 } } } },
  "2019-09": { $defs: { n: { exclusiveMinimum: 0 } }, properties: { n: { $ref: "#/$defs/n", type: "integer" } } },
  "2020-12": { properties: { n: { type: "integer" }, list: { prefixItems: [{ exclusiveMinimum: 0 }], items: false } } },
};

function withSchemas(schemas: { provision?: Schema; update?: Schema; bind?: Schema }) {
  return lab({ plans: { only: { id: ids.small, description: "x", ...schemas } } });
}

/** As large as a body may be. */
const many = 200_000;

describe.each(Object.values(drafts))("schemas of %s", ($schema) => {
  const validateOf = (schema: Schema) => {
    const { service } = withSchemas({ provision: { $schema, type: "object", ...schema } });
    const validate = buildCatalog([service]).services.get(ids.service)?.plans.get(ids.small)?.validate.provision;
    return validate ?? (() => "there is no such plan");
  };

  test("SCHEMA-07, ROB-05: what a schema asks for takes no longer than the body is large", () => {
    const list = validateOf({ properties: { list: { type: "array", uniqueItems: true } } });
    const numbers = Array.from({ length: many }, (_, index) => index);
    expect(list({ list: numbers })).toBeNull();
    expect(list({ list: [...numbers, { a: 1, b: 2 }, { b: 2, a: 1 }] })).toBe(
      "parameters.list must NOT have duplicate items",
    );
    expect(list({ list: [1, "1", [1], { 1: 1 }, null, false, ""] })).toBeNull();
    const twice = validateOf({ properties: { list: { type: "array", uniqueItems: false } } });
    expect(twice({ list: [1, 1] })).toBeNull();
    const url = validateOf({ properties: { url: { type: "string", format: "url" } } });
    expect(url({ url: "https://example.org/a?b=c" })).toBeNull();
    for (const text of ["no", `http://${"a:".repeat(many)} `]) expect(url({ url: text })).toContain("parameters.url");
  });

  test("SCHEMA-07: every pattern is matched, not the first one of the process in the place of all", () => {
    const validate = validateOf({
      properties: { letters: { type: "string", pattern: "^[a-z]+$" }, digits: { type: "string", pattern: "^[0-9]+$" } },
      patternProperties: { "^x-": { type: "string", pattern: "^x$" } },
    });
    expect(validate({ letters: "abc", digits: "123", "x-1": "x" })).toBeNull();
    expect(validate({ letters: "123" })).toContain("parameters.letters");
    expect(validate({ digits: "abc" })).toContain("parameters.digits");
    expect(validate({ "x-1": "abc" })).toContain("parameters.x-1");
  });

  test("SCHEMA-07: schemas may have an $id, the same one in several plans and after a reload", () => {
    const id = $schema.includes("draft-04") ? "id" : "$id";
    const part = { [id]: "https://example.org/part", type: "string" };
    const schema = () => ({ [id]: "https://example.org/whole", properties: { a: { ...part } } });
    for (let times = 0; times < 3; times++) {
      const validate = validateOf(schema());
      expect([validate({ a: "x" }), validate({ a: 1 })]).toEqual([null, "parameters.a must be string"]);
    }
  });
});

describe.each(wires)("%s: schemas of parameters", (wire) => {
  test.each(Object.keys(drafts) as (keyof typeof drafts)[])(
    "SCHEMA-05, SCHEMA-07, B7: %s is checked by its own rules",
    async (draft) => {
      const schema = { $schema: drafts[draft], type: "object", ...telling[draft] };
      const flow = await flowOn(wire, withSchemas({ provision: schema }));
      const of = (n: number) => ({ parameters: { n, list: [n] } });
      expectRefusal(await unchanged(flow, () => flow.provision("i1", of(0))), 400);
      await ready(flow, "i1", of(1));
    },
  );

  test("SCHEMA-07, PROV-18, UPD-23, BIND-32, B7: parameters that break the plan's schema are refused, with the place", async () => {
    const flow = await flowOn(wire, lab());
    const provision = (parameters: object) =>
      unchanged(flow, () => flow.provision("i1", { parameters: parameters as never }));
    expect(expectRefusal(await provision({ size: "large" }), 400)).toBe("parameters.size must be integer");
    expect(expectRefusal(await provision({ name: "UPPER" }), 400)).toContain("parameters.name");
    await ready(flow, "i1", { parameters: { size: 1 } });
    const update = await unchanged(flow, () => flow.update("i1", { parameters: { size: 0 } }));
    expect(expectRefusal(update, 400)).toBe("parameters.size must be >= 1");
    const bind = await unchanged(flow, () => flow.bind("i1", "b1", { parameters: { role: "king" } }));
    expect(expectRefusal(bind, 400)).toContain('["reader","writer"]');
  });

  test("SCHEMA-07: parameters that were left out are checked as an empty object", async () => {
    const schema = { type: "object", required: ["size"] };
    const flow = await flowOn(wire, withSchemas({ provision: schema, bind: schema }));
    expect(expectRefusal(await flow.provision("i1"), 400)).toContain("size");
    await ready(flow, "i1", { parameters: { size: 1 } });
    expect(expectRefusal(await flow.bind("i1", "b1"), 400)).toContain("size");
  });

  test("SCHEMA-07: a plan change is checked by the schema of the plan that it leads to", async () => {
    const strict = { type: "object", properties: { size: { maximum: 10 } } };
    const laboratory = lab({
      plans: {
        loose: { id: ids.large, description: "x" },
        strict: { id: ids.small, description: "x", update: strict },
      },
    });
    const flow = await flowOn(wire, laboratory);
    await ready(flow, "i1", { plan: "loose" });
    expectRefusal(await flow.update("i1", { plan: "strict", parameters: { size: 11 } }), 400);
    expect((await flow.update("i1", { parameters: { size: 11 }, acceptsIncomplete: false })).status).toBe(200);
    expect((await flow.update("i1", { plan: "strict", parameters: { size: 1 } })).status).toBe(202);
  });

  test("SCHEMA-07, PROV-18: a plan without a schema for updates is reached only with parameters that its own instances may have", async () => {
    const size = { type: "object", properties: { size: { type: "integer", maximum: 10 } } };
    const laboratory = lab({
      plans: {
        loose: { id: ids.large, description: "x" },
        strict: { id: ids.small, description: "x", provision: { ...size, required: ["size"] } },
      },
    });
    const flow = await flowOn(wire, laboratory);
    const change = (parameters?: { readonly size: number | string }) =>
      flow.update("i1", { plan: "strict", ...(parameters && { parameters }), acceptsIncomplete: false });
    await ready(flow, "i1", { plan: "loose", parameters: { other: true } });
    const missing = expectRefusal(await unchanged(flow, () => change()), 400);
    expect(missing).toBe("after the change to plan strict, parameters must have required property 'size'");
    expectRefusal(await unchanged(flow, () => change({ size: 11 })), 400);
    expect((await flow.update("i1", { parameters: { size: 11 }, acceptsIncomplete: false })).status).toBe(200);
    const kept = expectRefusal(await unchanged(flow, () => change()), 400);
    expect(kept).toBe("after the change to plan strict, parameters.size must be <= 10");
    expect((await change({ size: 3 })).status).toBe(200);
    expect((await flow.fetch("i1")).body).toMatchObject({ plan_id: ids.small, parameters: { other: true, size: 3 } });
    // What is not a change of plan goes on as before: the schema may have been made stricter since the instance was made.
    expect((await flow.update("i1", { parameters: { size: 12 }, acceptsIncomplete: false })).status).toBe(200);
  });

  test("a pattern that would block the process for seconds answers at once", async () => {
    const schema = { type: "object", properties: { name: { type: "string", pattern: "^(a+)+$" } } };
    const flow = await flowOn(wire, withSchemas({ provision: schema }));
    const started = performance.now();
    expectRefusal(await flow.provision("i1", { parameters: { name: `${"a".repeat(5_000)}!` } }), 400);
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  test("keys such as __proto__ in parameters are data, and change nothing else", async () => {
    const flow = await flowOn(wire, lab());
    const raw = (parameters: string) =>
      JSON.stringify({ service_id: ids.service, plan_id: ids.large, organization_guid: "o", space_guid: "s" }).replace(
        "}",
        `,"parameters":${parameters}}`,
      );
    const body = raw('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}');
    expect((await flow.request("PUT", "/v2/service_instances/i1", { body })).status).toBe(201);
    const fetched = (await flow.fetch("i1")).body.parameters;
    expect(Object.keys(fetched)).toEqual(["__proto__", "constructor"]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe("schemas in the catalog", () => {
  test("SCHEMA-01, SCHEMA-02: schemas stand where platforms look for them, with their draft", () => {
    const { service } = withSchemas({
      provision: { type: "object" },
      update: { type: "object" },
      bind: { type: "object" },
    });
    const parameters = { $schema: "http://json-schema.org/draft-04/schema#", type: "object" };
    expect(JSON.parse(buildCatalog([service]).body).services[0].plans[0].schemas).toEqual({
      service_instance: { create: { parameters }, update: { parameters } },
      service_binding: { create: { parameters } },
    });
  });

  test.each([
    ["SCHEMA-02: an unknown draft", { $schema: "http://json-schema.org/draft-03/schema#", type: "object" }],
    [
      "SCHEMA-03: a reference to somewhere else",
      { type: "object", properties: { a: { $ref: "https://example.com/a" } } },
    ],
    ["SCHEMA-03: a reference to nothing", { type: "object", properties: { a: { $ref: "#/definitions/none" } } }],
    ["SCHEMA-04: more than 64 kB", { type: "object", title: "x".repeat(66_000) }],
    ["what is no schema", { type: "objekt" }],
    ["a pattern that is none", { type: "object", properties: { a: { type: "string", pattern: "(" } } }],
    ["a pattern with look-around", { type: "object", properties: { a: { type: "string", pattern: "(?=a)b" } } }],
  ])("%s keeps the broker from starting, with the place of it", (_, schema) => {
    const { service } = withSchemas({ provision: schema });
    let error: unknown;
    try {
      buildCatalog([service]);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(CatalogError);
    expect((error as CatalogError).findings[0]?.path).toMatch(
      /^services\[0\]\.plans\[0\]\.schemas\.service_instance\.create\.parameters/,
    );
  });
});

test("ROB-05: parameters that cannot be checked in bounded time are refused with a sentence, and are no fault of the broker", () => {
  const definitions = Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => {
      const next = { $ref: `#/definitions/d${at + 1}` };
      return [`d${at}`, { allOf: [next, next] }];
    }),
  );
  const provision = { definitions: { ...definitions, d40: { type: "object" } }, allOf: [{ $ref: "#/definitions/d0" }] };
  const { service } = withSchemas({ provision });
  const plan = buildCatalog([service]).services.get(ids.service)?.plans.get(ids.small);
  expect(plan?.validate.provision({})).toBe("parameters would take too much work to check against the schema");
});

describe("a schema that is too much work to compile", () => {
  const tooMuch: Schema = { dependencies: { a: Array.from({ length: 5_000 }, (_, at) => `p${at}`) } };

  test("is a warning, with its place, and parameters are refused: instances that an earlier version made are still deleted", () => {
    const catalog = buildCatalog([withSchemas({ provision: tooMuch }).service]);
    expect(catalog.warnings).toEqual([
      {
        level: "warning",
        path: "services[0].plans[0].schemas.service_instance.create.parameters",
        message: expect.stringContaining("would take too much work to compile"),
      },
    ]);
    const validate = catalog.services.get(ids.service)?.plans.get(ids.small)?.validate.provision;
    expect(validate?.({})).toContain("would take too much work to compile");
  });

  test("is refused where it is new", () => {
    expect(() => buildCatalog([withSchemas({ bind: tooMuch }).service], { areNew: true })).toThrow(CatalogError);
  });

  test("is looked at once, whatever is asked", () => {
    let looks = 0;
    const provision = {
      get dependencies() {
        looks += 1;
        return tooMuch.dependencies;
      },
    };
    const catalog = buildCatalog([withSchemas({ provision }).service], { areChecked: true });
    const validate = catalog.services.get(ids.service)?.plans.get(ids.small)?.validate.provision;
    expect(validate?.({})).toContain("too much work");
    const before = looks;
    expect(validate?.({})).toContain("too much work");
    expect(looks).toBe(before);
  });

  test("does not keep an instance from a plan if the change brings no parameters", async () => {
    const plans = {
      loose: { id: ids.large, description: "x" },
      heavy: { id: ids.small, description: "x", provision: tooMuch },
    };
    const flow = await flowOn(wires[0] ?? "", lab({ plans }));
    await ready(flow, "i1", { plan: "loose", parameters: { size: 1 } });
    const withSome = await flow.update("i1", { plan: "heavy", parameters: { size: 2 }, acceptsIncomplete: false });
    expect(expectRefusal(withSome, 400)).toContain("too much work");
    expect((await flow.update("i1", { plan: "heavy", acceptsIncomplete: false })).status).toBe(200);
  });
});

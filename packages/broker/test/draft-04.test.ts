import { type JsonObject, toDraft04 } from "@osbert/protocol";
import { compileSchema, type Validate } from "@osbert/server/schemas";
import draft04 from "ajv-draft-04/dist/refs/json-schema-draft-04.json" with { type: "json" };
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { propertySeed } from "../../../tools/property-seed.js";
import { type BrokerOptions, buildCatalog, type CatalogError, type Schema } from "../src/index.js";
import { type Logger, logTo } from "../src/observe/index.js";
import { isValidDraft04 } from "./draft-04-validator.js";
import { expectRefusal, flowOn, ids, lab, ready, wires } from "./lab.js";
import { type DraftName, drafts, randomSchemas, randomValues } from "./random-schemas.js";

/** Such as every draft after the fourth has it, and Cloud Foundry refuses it. */
const modern = {
  $schema: drafts["2020-12"],
  $id: "https://example.org/parameters",
  type: "object",
  properties: {
    size: { $ref: "#/$defs/size" },
    kind: { const: "database" },
    list: { prefixItems: [{ type: "string" }], items: false, contains: { minLength: 1 }, additionalItems: true },
    anything: { anyOf: [true] },
  },
  dependentRequired: { list: ["size"] },
  unevaluatedProperties: false,
  examples: [{ size: 1 }],
  $defs: { size: { type: "integer", exclusiveMinimum: 0 } },
} as const satisfies Schema;

/** Says more than draft-04 can. */
const counting = {
  type: "object",
  properties: { tags: { propertyNames: { maxLength: 3 } } },
} as const satisfies Schema;

const serviceWith = (schemas: { provision?: Schema; update?: Schema; bind?: Schema }) =>
  lab({
    plans: { first: { id: ids.large, description: "x" }, second: { id: ids.small, description: "x", ...schemas } },
  });

function publishedOf(schema: Schema, options?: Pick<BrokerOptions, "schemaDraft">): JsonObject {
  const { body } = buildCatalog([serviceWith({ provision: schema }).service], options);
  return JSON.parse(body).services[0].plans[1].schemas.service_instance.create.parameters;
}

/** What Cloud Controller says of a schema before it takes a broker. */
function cloudControllerFaults(schema: JsonObject): readonly string[] {
  const { $schema } = schema;
  const wrong = [
    JSON.stringify(schema).length > 65_536 && "Must not be larger than 64KB",
    $schema === undefined && "Schema must have $schema key but was not present",
    $schema !== draft04.$schema && "Custom meta schemas are not supported.",
  ].filter((fault) => fault !== false);
  if (wrong.length > 0) return wrong;
  if (!isValidDraft04(draft04 as JsonObject, schema)) return ["Must conform to JSON Schema Draft 04"];
  try {
    isValidDraft04(schema, {});
    return [];
  } catch (error) {
    return [`No external references are allowed: ${String(error)}`];
  }
}

const runs = Number(process.env.OSBERT_TEST_RUNS ?? 150);

describe.each(Object.keys(drafts) as DraftName[])("random schemas of %s", (draft) => {
  test("SCHEMA-05: the translation allows all that the original allows, and no more unless a loss was told", () => {
    let compared = 0;
    fc.assert(
      fc.property(randomSchemas(draft), fc.array(randomValues, { minLength: 15, maxLength: 15 }), (schema, values) => {
        const original = compiled(schema);
        if (original === undefined) return;
        const { schema: translated, losses } = toDraft04(schema as unknown as JsonObject);
        const wire = JSON.parse(JSON.stringify(translated)) as JsonObject;
        expect(cloudControllerFaults(wire)).toEqual([]);
        const generous = compileSchema(wire, "it");
        compared++;
        for (const value of values) {
          const isAllowed = allows(original, value);
          if (isAllowed === undefined) continue;
          for (const [who, says] of [
            ["generous", generous(value) === null],
            ["strict", isValidDraft04(wire, value)],
          ] as const) {
            const told = { who, value, original: isAllowed, translation: says, losses };
            if (isAllowed || losses.length === 0) expect(told).toEqual({ ...told, translation: isAllowed });
          }
        }
      }),
      { numRuns: runs, ...propertySeed() },
    );
    // Most of them are schemas to the broker, so that something was compared.
    expect(compared).toBeGreaterThan(runs / 2);
  });
});

/** Some that are put together at random are refused by the broker itself. */
function compiled(schema: Schema): Validate | undefined {
  try {
    return compileSchema(schema, "it");
  } catch {
    return undefined;
  }
}

/** What Ajv makes of a random schema of the later drafts does not always run: a variable is missing, or not set. */
function allows(validate: Validate, value: unknown): boolean | undefined {
  try {
    return validate(value) === null;
  } catch {
    return undefined;
  }
}

describe("the published catalog", () => {
  test("SCHEMA-02, SCHEMA-05: schemas are published in draft-04, in which Cloud Foundry takes them", () => {
    expect(cloudControllerFaults(modern as unknown as JsonObject)).toEqual(["Custom meta schemas are not supported."]);
    expect(cloudControllerFaults({ ...modern, $schema: draft04.$schema } as unknown as JsonObject)).not.toEqual([]);
    const published = publishedOf(modern);
    expect(cloudControllerFaults(published)).toEqual([]);
    expect(published).toEqual({
      $schema: draft04.$schema,
      id: "https://example.org/parameters",
      type: "object",
      properties: {
        size: { $ref: "#/definitions/size" },
        kind: { enum: ["database"] },
        list: {
          items: [{ type: "string" }],
          additionalItems: false,
          not: { type: "array", items: { not: { minLength: 1 } } },
        },
        anything: { anyOf: [{}] },
      },
      dependencies: { list: ["size"] },
      additionalProperties: false,
      examples: [{ size: 1 }],
      definitions: { size: { type: "integer", minimum: 0, exclusiveMinimum: true } },
    });
    expect(buildCatalog([serviceWith({ provision: modern }).service]).warnings).toEqual([]);
  });

  test("a schema that does not name its draft is taken for draft-07, and published like any other", () => {
    expect(publishedOf({ type: "object", properties: { a: { const: 1 } } })).toEqual({
      $schema: draft04.$schema,
      type: "object",
      properties: { a: { enum: [1] } },
    });
    // What code may hold, and JSON does not.
    expect(publishedOf({ type: "object", title: undefined })).toEqual({ $schema: draft04.$schema, type: "object" });
  });

  test("where the translation says less there is a warning, with the exact place", () => {
    const { warnings } = buildCatalog([serviceWith({ provision: counting, update: counting, bind: counting }).service]);
    expect(warnings.map(({ path }) => path)).toEqual(
      ["service_instance.create", "service_instance.update", "service_binding.create"].map(
        (verb) => `services[0].plans[1].schemas.${verb}.parameters#/properties/tags/propertyNames/maxLength`,
      ),
    );
    expect(warnings[0]?.message).toMatch(/^is left out in draft-04/);
  });

  test("as-written publishes what the author wrote", () => {
    expect(publishedOf(modern, { schemaDraft: "as-written" })).toEqual(modern);
    const { warnings } = buildCatalog([serviceWith({ provision: counting }).service], { schemaDraft: "as-written" });
    expect(warnings).toEqual([]);
  });

  test("SCHEMA-03, SCHEMA-04: it is the published schema that has to keep the limits", () => {
    const faultsOf = (schema: Schema) => {
      try {
        buildCatalog([serviceWith({ provision: schema }).service]);
        return [];
      } catch (error) {
        return (error as CatalogError).findings.map(({ message }) => message);
      }
    };
    const unused = { type: "object", definitions: { unused: { title: "x".repeat(66_000) } } };
    expect(faultsOf(unused)).toEqual([]);
    const grows = { $schema: drafts["draft-07"], items: Array.from({ length: 20 }, () => false) };
    const written = { ...grows, title: "x".repeat(65_500 - JSON.stringify(grows).length) };
    expect(JSON.stringify(written).length).toBeLessThan(65_536);
    expect(faultsOf(written)[0]).toMatch(/must have at most 65536 bytes/);
    let deep: Schema = {};
    for (let depth = 0; depth < 300; depth++) deep = { not: deep };
    expect(faultsOf(deep)).toEqual(["is nested deeper than 200 levels"]);
    const circular: Record<string, unknown> = { type: "object" };
    circular.properties = { circular };
    expect(faultsOf(circular)[0]).toMatch(/circular/);
  });

  test("the warnings are told at start to whoever watches, and after a change those that are new", async () => {
    const lines: string[] = [];
    const note = (_: object, message: string) => void lines.push(message);
    const logger: Logger = { debug: () => undefined, info: () => undefined, warn: note, error: note };
    const flow = await flowOn("fetch", serviceWith({ provision: counting }), { observe: logTo(logger) });
    const place = (verb: string) =>
      `catalog: services[0].plans[1].schemas.${verb}.parameters#/properties/tags/propertyNames/maxLength`;
    expect(lines).toEqual([expect.stringContaining(place("service_instance.create"))]);
    await flow.broker.offer([serviceWith({ provision: counting, bind: counting }).service]);
    expect(lines.slice(1)).toEqual([expect.stringContaining(place("service_binding.create"))]);
    expect(flow.broker.warnings).toHaveLength(2);
    await flow.broker.offer([serviceWith({ provision: counting }).service], { schemaDraft: "as-written" });
    expect(flow.broker.warnings).toEqual([]);
    expect(lines).toHaveLength(2);
  });
});

describe.each(wires)("%s: parameters", (wire) => {
  test("SCHEMA-07: are checked with what the author wrote, not with what was published", async () => {
    const flow = await flowOn(wire, serviceWith({ provision: counting }));
    const provision = (tags: JsonObject) => ({ plan: "second", parameters: { tags } });
    expectRefusal(await flow.provision("i1", provision({ long: 1, abcd: 2 })), 400);
    await ready(flow, "i1", provision({ abc: 1 }));
  });
});

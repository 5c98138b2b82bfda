import { describe, expect, test } from "vitest";
import { checkCatalog, type Json, type JsonObject, toDraft04 } from "../src/index.js";

const draft04 = "http://json-schema.org/draft-04/schema#";
const draft06 = "http://json-schema.org/draft-06/schema#";
const draft07 = "http://json-schema.org/draft-07/schema#";
const draft2019 = "https://json-schema.org/draft/2019-09/schema";
const draft2020 = "https://json-schema.org/draft/2020-12/schema";
const never = { not: {} };

/** As it comes from JSON: `then` cannot be written into an object without a warning. */
const json = (text: string) => JSON.parse(text) as JsonObject;

function translated($schema: string, schema: object): JsonObject {
  const result = toDraft04({ $schema, ...schema } as JsonObject);
  expect(result.losses).toEqual([]);
  const { $schema: said, ...rest } = result.schema;
  expect(said).toBe(draft04);
  return rest;
}

const placesOf = ($schema: string, schema: object) =>
  toDraft04({ $schema, ...schema } as JsonObject).losses.map(({ pointer }) => pointer);

describe("what means the same in draft-04", () => {
  test.each<readonly [string, string, object, object]>([
    [
      "what draft-04 has already",
      draft07,
      { type: "object", minProperties: 1, title: "t", default: { a: 1 }, "x-own": 1 },
      { type: "object", minProperties: 1, title: "t", default: { a: 1 }, "x-own": 1 },
    ],
    [
      "a schema of draft-04",
      draft04,
      { id: "https://x", minimum: 1, exclusiveMinimum: true, required: ["a"] },
      { id: "https://x", minimum: 1, exclusiveMinimum: true, required: ["a"] },
    ],
    [
      "a bound that is excluded",
      draft06,
      { exclusiveMinimum: 0, exclusiveMaximum: 9 },
      { minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: true },
    ],
    [
      "two bounds that are the same",
      draft07,
      { minimum: 1, exclusiveMinimum: 1, maximum: 5, exclusiveMaximum: 5 },
      { minimum: 1, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: true },
    ],
    [
      "two bounds, of which the narrower counts",
      draft07,
      { minimum: 1, exclusiveMinimum: 0, maximum: 5, exclusiveMaximum: 5 },
      { minimum: 1, maximum: 5, exclusiveMaximum: true },
    ],
    ["const", draft07, { const: { a: 1 } }, { enum: [{ a: 1 }] }],
    ["const beside enum", draft07, { const: 1, enum: [1, 2, 2] }, { enum: [1], allOf: [{ enum: [1, 2] }] }],
    [
      "true and false",
      draft07,
      { properties: { a: true, b: false }, items: false, anyOf: [true] },
      { properties: { a: {}, b: never }, items: never, anyOf: [{}] },
    ],
    [
      "true and false where draft-04 has them",
      draft07,
      { additionalProperties: false, items: [true], additionalItems: false },
      { additionalProperties: false, items: [{}], additionalItems: false },
    ],
    ["examples, and an $id", draft07, { $id: "https://x/y", examples: [1] }, { id: "https://x/y", examples: [1] }],
    ["no required at all", draft07, { required: [], dependencies: { a: [] } }, { dependencies: {} }],
    ["null where it is allowed besides", draft07, { type: "string", nullable: true }, { type: ["string", "null"] }],
    ["contains", draft07, { contains: { const: 1 } }, { not: { type: "array", items: { not: { enum: [1] } } } }],
    ["contains that asks for nothing", draft2019, { contains: { const: 1 }, minContains: 0 }, {}],
    [
      "dependentRequired and dependentSchemas",
      draft2019,
      { dependentRequired: { a: ["b"], c: [] }, dependentSchemas: { a: { const: 1 } } },
      { dependencies: { a: ["b"] }, allOf: [{ dependencies: { a: { enum: [1] } } }] },
    ],
    [
      "prefixItems",
      draft2020,
      { prefixItems: [true, { const: 1 }], items: { type: "null" } },
      { items: [{}, { enum: [1] }], additionalItems: { type: "null" } },
    ],
    [
      "items after no prefixItems",
      draft2020,
      { items: { const: 1 }, additionalItems: false },
      { items: { enum: [1] } },
    ],
    [
      "names of properties by pattern",
      draft07,
      { propertyNames: { type: "string", pattern: "^a" } },
      { allOf: [{ patternProperties: { "^a": {} }, additionalProperties: false }] },
    ],
    [
      "names of properties by what they must not be",
      draft07,
      { propertyNames: { not: { pattern: "^_" } } },
      { allOf: [{ patternProperties: { "^_": never } }] },
    ],
    [
      "names of properties from a list",
      draft07,
      { propertyNames: { enum: ["a", "b"] } },
      { allOf: [{ properties: { a: {}, b: {} }, additionalProperties: false }] },
    ],
    ["no properties", draft07, { propertyNames: false }, { maxProperties: 0 }],
    ["if without anything", draft07, { if: { const: 1 } }, {}],
    ["if and else", draft07, { if: { const: 1 }, else: { const: 2 } }, { anyOf: [{ enum: [1] }, { enum: [2] }] }],
    [
      "if and then",
      draft07,
      json('{ "if": { "const": 1 }, "then": { "const": 2 } }'),
      { anyOf: [{ not: { enum: [1] } }, { enum: [2] }] },
    ],
    [
      "unevaluatedProperties beside properties",
      draft2020,
      { properties: { a: true }, unevaluatedProperties: false },
      { properties: { a: {} }, additionalProperties: false },
    ],
    [
      "unevaluatedProperties around allOf",
      draft2020,
      { allOf: [{ properties: { a: true } }], unevaluatedProperties: false },
      {
        allOf: [
          { properties: { a: {} } },
          { properties: { a: {} }, patternProperties: {}, additionalProperties: false },
        ],
      },
    ],
    [
      "unevaluatedProperties where all were looked at",
      draft2019,
      { additionalProperties: true, unevaluatedProperties: false },
      { additionalProperties: true },
    ],
    [
      "unevaluatedItems",
      draft2020,
      { prefixItems: [true], unevaluatedItems: false },
      { items: [{}], additionalItems: false },
    ],
  ])("%s", (_, $schema, schema, expected) => {
    expect(translated($schema, schema)).toEqual(expected);
  });

  test("if, then and else say the condition once", () => {
    const schema = json('{ "if": { "const": 1 }, "then": { "const": 2 }, "else": false }');
    const $ref = "#/definitions/if";
    expect(translated(draft07, schema)).toEqual({
      anyOf: [{ allOf: [{ $ref }, { enum: [2] }] }, { allOf: [{ not: { $ref } }, never] }],
      definitions: { if: { enum: [1] } },
    });
    let nested: Json = { const: 1 };
    for (let depth = 0; depth < 60; depth++) nested = { ...json('{ "then": true, "else": false }'), if: nested };
    expect(JSON.stringify(translated(draft07, nested as JsonObject)).length).toBeLessThan(20_000);
  });

  test("references lead to definitions, wherever they led, and what stands beside them counts", () => {
    const schema = {
      $id: "https://example.org/whole",
      $defs: { "a/b": { const: 1 }, unused: true, "a%b": { $anchor: "here", const: 2 } },
      properties: {
        slash: { $ref: "#/$defs/a~1b", description: "one" },
        percent: { $ref: "#/$defs/a%25b" },
        anchor: { $ref: "#here" },
        property: { $ref: "#/properties/slash" },
        all: { $ref: "#" },
        part: { $id: "part", $defs: { x: { const: 3 } }, items: { $ref: "#/$defs/x" }, contains: { $ref: "#" } },
      },
    };
    const { properties, definitions, ...rest } = translated(draft2020, schema);
    expect(rest).toEqual({ id: "https://example.org/whole" });
    const to = (name: string) => ({ $ref: `#/definitions/${name}` });
    expect(properties).toEqual({
      slash: { description: "one", allOf: [to("a_1b")] },
      percent: to("a_b"),
      anchor: to("a_b"),
      property: to("slash"),
      all: { $ref: "#" },
      part: { items: to("x"), not: { type: "array", items: { not: to("part") } } },
    });
    expect(definitions).toEqual({
      a_1b: { enum: [1] },
      a_b: { enum: [2] },
      slash: { description: "one", allOf: [to("a_1b")] },
      x: { enum: [3] },
      part: { items: to("x"), not: { type: "array", items: { not: to("part") } } },
    });
  });

  test("names such as __proto__ are names", () => {
    const schema = json('{ "properties": { "__proto__": { "const": 1 } }, "required": ["__proto__"], "__proto__": 7 }');
    expect(JSON.stringify(translated(draft07, schema))).toBe(
      '{"properties":{"__proto__":{"enum":[1]}},"required":["__proto__"],"__proto__":7}',
    );
  });
});

describe("where draft-04 says less", () => {
  test.each<readonly [string, string, object, readonly string[], object]>([
    [
      "counted items",
      draft2019,
      { properties: { a: { contains: true, minContains: 2 } } },
      ["/properties/a/contains"],
      { properties: { a: { not: { type: "array", items: { not: {} } } } } },
    ],
    [
      "lengths of names",
      draft07,
      { propertyNames: { pattern: "a", maxLength: 3 } },
      ["/propertyNames/maxLength"],
      { allOf: [{ patternProperties: { a: {} }, additionalProperties: false }] },
    ],
    [
      "a reference that depends on where one comes from",
      draft2020,
      { properties: { a: { $dynamicRef: "#a" } } },
      ["/properties/a/$dynamicRef"],
      { properties: { a: {} } },
    ],
    [
      "properties that only a branch looks at",
      draft2020,
      { anyOf: [{ properties: { a: true } }, { required: ["b"] }], unevaluatedProperties: false },
      ["/unevaluatedProperties"],
      {
        anyOf: [{ properties: { a: {} } }, { required: ["b"] }],
        allOf: [{ properties: { a: {} }, patternProperties: {}, additionalProperties: false }],
      },
    ],
    [
      "items that only a branch looks at",
      draft2020,
      { anyOf: [{ prefixItems: [true] }], unevaluatedItems: false },
      ["/unevaluatedItems"],
      { anyOf: [{ items: [{}] }], allOf: [{ items: [{}], additionalItems: false }] },
    ],
  ])("%s: it allows more, and the place is told", (_, $schema, schema, places, expected) => {
    expect(placesOf($schema, schema)).toEqual(places);
    const { $schema: __, ...rest } = toDraft04({ $schema, ...schema } as JsonObject).schema;
    expect(rest).toEqual(expected);
  });

  test("what allows more does not stand where that would forbid: not, oneOf, if", () => {
    const lossy = { propertyNames: { maxLength: 3 } };
    const schema = {
      definitions: { lossy },
      properties: {
        not: { not: { $ref: "#/definitions/lossy" } },
        one: { oneOf: [{ $ref: "#/definitions/lossy" }, { type: "null" }] },
        fine: { not: { type: "null" } },
        when: json('{ "if": { "$ref": "#/definitions/lossy" }, "then": { "type": "null" } }'),
        both: { if: lossy, ...json('{ "then": { "type": "null" }, "else": { "type": "string" } }') },
      },
    };
    const { schema: result, losses } = toDraft04(schema as unknown as JsonObject);
    expect(result.properties).toEqual({
      not: {},
      one: { anyOf: [{ $ref: "#/definitions/lossy" }, { type: "null" }] },
      fine: { not: { type: "null" } },
      when: {},
      both: { anyOf: [{ type: "null" }, { type: "string" }] },
    });
    expect(losses.map(({ pointer }) => pointer).sort()).toEqual([
      "/definitions/lossy/propertyNames/maxLength",
      "/properties/both/if",
      "/properties/not/not",
      "/properties/one/oneOf",
      "/properties/when/if",
    ]);
    for (const { message } of losses) expect(message).toMatch(/ in draft-04/);
  });

  test("a place is a JSON pointer", () => {
    expect(placesOf(draft07, { properties: { "a/b~c": { propertyNames: { format: "email" } } } })).toEqual([
      "/properties/a~1b~0c/propertyNames/format",
    ]);
  });
});

describe("anything at all", () => {
  test("what is nested too deeply is refused, and not walked", () => {
    let deep: JsonObject = {};
    for (let depth = 0; depth < 3_000; depth++) deep = { not: deep };
    expect(() => toDraft04(deep)).toThrow(RangeError);
  });

  test.each([
    '{ "properties": 5, "allOf": "x", "enum": {}, "items": 7, "dependencies": null, "propertyNames": [1], "type": {} }',
    '{ "$ref": 5, "$id": 7, "if": 1, "then": 2, "not": null, "contains": "x", "required": {}, "minimum": "1" }',
    '{ "$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": 1, "unevaluatedProperties": 5, "unevaluatedItems": [] }',
    '{ "$schema": 5, "$ref": "#/properties/x/y", "properties": { "x": "text" } }',
    '{ "$ref": "#%", "$anchor": 4, "oneOf": [1, null, "x"], "const": null }',
    '{ "$ref": "https://example.org/elsewhere" }',
  ])("what is no valid schema does no harm: %s", (text) => {
    const { schema } = toDraft04(json(text));
    const plan = {
      id: "p",
      name: "p",
      description: "p",
      schemas: { service_instance: { create: { parameters: schema } } },
    };
    const service = { id: "s", name: "s", description: "s", bindable: false, plans: [plan] };
    expect(checkCatalog({ services: [service] }).filter(({ level }) => level === "error")).toEqual([]);
  });
});

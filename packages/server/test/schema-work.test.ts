import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { compileSchema, patternCost, type Schema, TooMuchWork } from "@osbert/server/schemas";
import { describe, expect, test } from "vitest";

const latest = "https://json-schema.org/draft/2020-12/schema";

function times<Item>(count: number, make: (at: number) => Item): Item[] {
  return Array.from({ length: count }, (_, at) => make(at));
}

function members<Item>(count: number, make: (at: number) => Item): Record<string, Item> {
  return Object.fromEntries(times(count, (at) => [`p${at}`, make(at)]));
}

/** Each refers twice to the next: 2^levels ways to the last one. */
function doubling(keyword: string, levels: number, last: Schema): Schema {
  const definitions = members<Schema>(levels, (at) => ({
    [keyword]: [{ $ref: `#/definitions/p${at + 1}` }, { $ref: `#/definitions/p${at + 1}` }],
  }));
  return { definitions: { ...definitions, [`p${levels}`]: last }, $ref: "#/definitions/p0" };
}

function nested(levels: number): object {
  return times(levels, (at) => at).reduce<object>((inner) => ({ a: inner }), {});
}

const node = (schema: Schema): Schema => ({ definitions: { node: schema }, $ref: "#/definitions/node" });
const again = { $ref: "#/definitions/node" };
const manyOf = (schema: Schema): Schema => ({ allOf: times(600, () => schema) });

const refusedChecks: readonly (readonly [string, Schema, unknown])[] = [
  ["2^40 references that all hold", doubling("allOf", 40, { type: "object" }), {}],
  ["2^40 references of which none holds", doubling("anyOf", 40, { type: "string" }), {}],
  ["two looks at each level", node({ properties: { a: { allOf: [{ not: { not: again } }, again] } } }), nested(90)],
  [
    "branches that look at the same member",
    node({
      oneOf: [
        { properties: { a: again }, required: ["a"] },
        { properties: { a: again }, required: ["a", "b"] },
        { maxProperties: 0 },
      ],
    }),
    nested(90),
  ],
  [
    "dynamic references",
    {
      $schema: latest,
      $dynamicAnchor: "n",
      properties: { a: { allOf: [{ $dynamicRef: "#n" }, { $dynamicRef: "#n" }] } },
    },
    nested(60),
  ],
  ["one that is itself", { $ref: "#" }, {}],
  ["a part that is the whole", { allOf: [{ $ref: "#" }] }, {}],
  ["a long text, measured again and again", manyOf({ maxLength: 2_000_000 }), "x".repeat(1_000_000)],
  ["a long text with a format", manyOf({ format: "uri-reference" }), "x".repeat(1_000_000)],
  ["a pattern of thousands of states", { pattern: "(a|aa|aaa|aaaa){250}$" }, `${"a".repeat(50_000)}b`],
  ["unique items, sorted again and again", manyOf({ uniqueItems: true }), times(50_000, (at) => at)],
  ["members, counted again and again", manyOf({ minProperties: 1 }), members(20_000, () => 1)],
  ["names, looked at again and again", manyOf({ propertyNames: { type: "string" } }), members(20_000, () => 1)],
  ["items, searched again and again", manyOf({ not: { contains: { const: 1 } } }), times(50_000, () => 2)],
  ["wide branches for each item", { items: manyOf({ type: "number" }) }, times(50_000, () => 1)],
  [
    "failed branches for each item",
    {
      definitions: { text: { type: "string" } },
      items: { anyOf: [...times(600, () => ({ $ref: "#/definitions/text" })), { type: "number" }] },
    },
    times(50_000, () => 1),
  ],
  [
    "a long value to compare with",
    {
      definitions: { other: { not: { const: times(5_000, () => 1) } } },
      allOf: times(600, () => ({ $ref: "#/definitions/other" })),
    },
    [...times(4_999, () => 1), 2],
  ],
];

const refusedSchemas: readonly (readonly [string, Schema])[] = [
  [
    "a way into every level of a nested one",
    {
      definitions: {
        all: times(180, (at) => 180 - at).reduce<Schema>((inner, at) => ({ $id: `#a${at}`, not: inner }), {
          type: "string",
        }),
      },
      allOf: times(180, (at) => ({ $ref: `#a${at + 1}` })),
    },
  ],
  ["patterns that repeat much", { allOf: times(1_500, (at) => ({ pattern: `(a|b${at}){900}` })) }],
  ["one pattern of millions of states", { pattern: "(\\pL{900})".repeat(5_000) }],
  ["names that depend on many", { dependencies: { a: times(5_000, (at) => `p${at}`) } }],
  [
    "books of what was looked at",
    {
      $schema: latest,
      $defs: { big: { properties: members(3_000, () => true as unknown as Schema) } },
      anyOf: [{ properties: { x: true as unknown as Schema } }],
      allOf: times(1_000, () => ({ $ref: "#/$defs/big" })),
      unevaluatedProperties: false,
    },
  ],
];

describe("the work that schemas of others make is bounded", () => {
  test.each(refusedChecks)("a check is given up: %s", (_, schema, value) => {
    const validate = compileSchema(schema, "it");
    expect(() => validate(value)).toThrow(TooMuchWork);
    expect(() => validate(value)).toThrow("it would take too much work to check against the schema");
  });

  test.each(refusedSchemas)("a schema is not compiled: %s", (_, schema) => {
    expect(() => compileSchema(schema, "it")).toThrow(TooMuchWork);
    expect(() => compileSchema(schema, "it")).toThrow("it: the schema would take too much work to compile");
  });

  test("what was given up costs the next check nothing", () => {
    const validate = compileSchema(node({ properties: { a: { allOf: [again, again] } } }), "it");
    expect(() => validate(nested(60))).toThrow(TooMuchWork);
    expect(validate(nested(3))).toBeNull();
  });

  test.each<readonly [string, Schema, unknown, unknown]>([
    [
      "2,500 properties in 64 KiB, which could not be compiled",
      { properties: members(2_500, () => ({ type: "string" })) },
      members(2_500, () => "x"),
      { ...members(2_500, () => "x"), p2499: 1 },
    ],
    [
      "a tree of 20,000 nodes that refers to itself",
      node({ type: "object", properties: { of: { type: "array", items: again }, a: { type: "number" } } }),
      { of: times(100, () => ({ of: times(200, () => ({ a: 1 })) })) },
      { of: [...times(99, () => ({ of: times(200, () => ({ a: 1 })) })), { of: [{ a: "1" }] }] },
    ],
    [
      "a list of 2,000 unique texts with a pattern",
      { uniqueItems: true, items: { type: "string", pattern: "^[a-z0-9-]{1,63}$" } },
      times(2_000, (at) => `name-${at}`),
      [...times(2_000, (at) => `name-${at}`), "name-7"],
    ],
    [
      "a text of 64 KiB with a pattern",
      { pattern: "^[A-Za-z0-9+/=\\n]+$" },
      "QUJD".repeat(16_000),
      `${"QUJD".repeat(16_000)}!`,
    ],
    [
      "properties that nobody looked at",
      { $schema: latest, allOf: [{ properties: { a: { type: "number" } } }], unevaluatedProperties: false },
      { a: 1 },
      { a: 1, b: 2 },
    ],
  ])("and what people write is checked to its end: %s", (_, schema, right, wrong) => {
    const validate = compileSchema(schema, "it");
    expect(validate(right)).toBeNull();
    expect(validate(wrong)).toMatch(/^it/);
  });

  test("of several faults, the first is told", () => {
    const schema = { properties: { a: { type: "string", minLength: 3, pattern: "^x" }, b: { type: "number" } } };
    const validate = compileSchema({ ...schema, required: ["c"] }, "it");
    expect(validate({ a: "y", b: "z", c: 1 })).toBe("it.a must NOT have fewer than 3 characters");
    expect(validate({ b: "z", c: 1 })).toBe("it.b must be number");
  });
});

test("a schema that nobody has any more is forgotten: each was kept for ever", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const schemas = times(50, (at) => {
    const schema = { type: "object", properties: { [`a${at}`]: { enum: [`${at}`], pattern: `^${at}` } } } as const;
    compileSchema(schema, "it")({});
    return new WeakRef(schema);
  });
  // What was looked at through a WeakRef lives until the end of the turn.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  expect(schemas.filter((schema) => schema.deref() !== undefined).length).toBeLessThan(5);
});

test("the cost of a pattern is about what RE2 makes of it", () => {
  expect(patternCost("^[a-z0-9-]{1,63}$")).toBeLessThan(1_000);
  expect(patternCost("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")).toBeLessThan(500);
  expect(patternCost("((a?){31}){32}")).toBeGreaterThan(2_000);
  expect(patternCost("(\\pL{900})".repeat(50))).toBeGreaterThan(45_000);
  expect(patternCost("a{b}\\{2}[{9}]")).toBeLessThan(20);
});

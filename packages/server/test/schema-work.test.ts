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
  [
    "a long list in a list, sorted again and again",
    { allOf: times(100, () => ({ uniqueItems: true })) },
    [times(30_000, () => 1)],
  ],
  [
    "a large value that is compared with many",
    { allOf: times(300, (at) => ({ not: { const: { a: at } } })) },
    members(20_000, () => 1),
  ],
  ["a pattern of thousands of states on texts of nothing", { items: { pattern: "(a?){900}" } }, times(5_000, () => "")],
  [
    "types that each item lacks, in each branch",
    { anyOf: times(3, () => ({ items: { type: "string" } })) },
    times(100_000, () => 1),
  ],
  [
    "types that each member lacks, in each branch",
    {
      definitions: { texts: { properties: members(1_000, () => ({ type: "string" })) } },
      anyOf: times(150, () => ({ $ref: "#/definitions/texts" })),
    },
    members(1_000, () => 1),
  ],
  [
    "members that are compared with each name that was looked at",
    { $schema: latest, properties: members(400, () => true as unknown as Schema), unevaluatedProperties: {} },
    Object.fromEntries(times(50_000, (at) => [`q${at}`, 1])),
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
  [
    "patterns in which a bracket closes nothing, as RE2 reads them",
    { allOf: times(100, (at) => ({ pattern: `[^][](a?){1000}${at}]` })) },
  ],
  [
    "patterns behind a bracket that is a letter",
    { allOf: times(100, (at) => ({ pattern: `\\Q[\\E(a?){1000}${at}]` })) },
  ],
  ["a class of many classes", { pattern: `[${"\\pL".repeat(900)}]` }],
  ["any of many classes", { pattern: `(${times(900, () => "\\pL").join("|")})` }],
  ["ranges of all letters, large or small", { pattern: `(?i)[${"a-\u{10ffff}".repeat(140)}]` }],
  ["the same, with their numbers", { pattern: `(?i)[${"a-\\x{10ffff}".repeat(140)}]` }],
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
      "40 names with a long class and a count",
      { properties: members(40, (at) => ({ pattern: `^[A-Za-z0-9_\\-.${"@:/+".slice(at % 4)}]{1,${216 + at}}$` })) },
      members(40, () => "a.b"),
      { p7: "a b" },
    ],
    [
      "a database as plans have it",
      {
        $schema: "http://json-schema.org/draft-04/schema#",
        type: "object",
        additionalProperties: false,
        definitions: {
          name: { type: "string", pattern: "^[a-z][a-z0-9_]{0,62}$", minLength: 1, maxLength: 63 },
          cidr: { type: "string", pattern: "^(?:[0-9]{1,3}\\.){3}[0-9]{1,3}/(?:[0-9]|[12][0-9]|3[0-2])$" },
          window: { type: "string", pattern: "^(mon|tue|wed|thu|fri|sat|sun):([01][0-9]|2[0-3]):[0-5][0-9]$" },
        },
        properties: {
          version: { enum: ["14", "15", "16", "17"] },
          storage_gb: { type: "integer", minimum: 10, maximum: 16_384, multipleOf: 10 },
          databases: { type: "array", maxItems: 100, uniqueItems: true, items: { $ref: "#/definitions/name" } },
          allowed: { type: "array", items: { $ref: "#/definitions/cidr" } },
          maintenance: { $ref: "#/definitions/window" },
          notify: { type: "array", items: { type: "string", format: "email" } },
          backup: {
            oneOf: [
              { type: "object", properties: { kind: { enum: ["none"] } }, required: ["kind"] },
              {
                type: "object",
                properties: { kind: { enum: ["daily"] }, keep: { type: "integer" }, to: { format: "uri" } },
                required: ["kind", "keep"],
              },
            ],
          },
        },
        required: ["version"],
      },
      {
        ...{ version: "16", storage_gb: 100, databases: times(100, (at) => `db_${at}`), maintenance: "sun:03:30" },
        ...{ allowed: times(500, (at) => `10.0.${at % 256}.0/24`), notify: ["ops@example.org"] },
        backup: { kind: "daily", keep: 7, to: "https://example.org/backups" },
      },
      { version: "16", backup: { kind: "daily" } },
    ],
    [
      "a machine of one of 300 sizes, with labels, users and rules",
      {
        $schema: latest,
        type: "object",
        unevaluatedProperties: false,
        $defs: {
          port: { type: "integer", minimum: 1, maximum: 65_535 },
          rule: {
            type: "object",
            properties: {
              from: { $ref: "#/$defs/port" },
              to: { $ref: "#/$defs/port" },
              what: { enum: [{ any: true }, "tcp", "udp"] },
            },
            required: ["from"],
            dependentRequired: { to: ["from"] },
          },
        },
        allOf: [
          {
            properties: {
              size: { enum: times(300, (at) => `c${at}.large`) },
              region: { enum: times(40, (at) => `region-${at}`) },
            },
          },
          {
            properties: {
              labels: {
                type: "object",
                propertyNames: { pattern: "^[a-z0-9./-]{1,253}$" },
                additionalProperties: { maxLength: 63 },
              },
            },
          },
        ],
        properties: {
          key: {
            type: "string",
            pattern: "^(ssh-(rsa|ed25519)|ecdsa-sha2-nistp256) [A-Za-z0-9+/=]{40,8000}( .{0,200})?$".replace(
              "8000",
              "1000",
            ),
          },
          rules: { type: "array", items: { $ref: "#/$defs/rule" } },
          users: { type: "array", items: { type: "string", format: "uuid" } },
        },
      },
      {
        ...{ size: "c299.large", region: "region-3", labels: members(64, () => "x") },
        key: `ssh-ed25519 ${"A".repeat(68)} me@example.org`,
        rules: times(200, (at) => ({ from: at + 1, to: at + 2, what: at % 2 === 0 ? "tcp" : { any: true } })),
        users: times(1_000, () => "5e7f0a7e-7d0a-4c5e-9f2e-3f7a51c0de01"),
      },
      { size: "c299.large", colour: "red" },
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

describe("values that are compared with what is large are looked at once", () => {
  test("enum", () => {
    const validate = compileSchema({ enum: times(300, (at) => ({ a: at })) }, "it");
    let looks = 0;
    const ownKeys = (target: object) => {
      looks += 1;
      return Reflect.ownKeys(target);
    };
    expect(validate(new Proxy(members(1_000, () => 1) as object, { ownKeys }))).toContain("allowed values");
    expect(looks).toBeLessThan(10);
    expect(validate({ a: 299 })).toBeNull();
  });

  test("and are told as they were", () => {
    const mixed = compileSchema({ enum: [1, "b", null, [1, { x: 1, y: 2 }], { z: true }] }, "it");
    for (const value of [1, "b", null, [1, { y: 2, x: 1 }], { z: true }]) expect(mixed(value)).toBeNull();
    for (const value of [2, "c", false, [], [{ x: 1, y: 2 }, 1], { z: false }, {}, "[1]"])
      expect(mixed(value)).toBe(
        'it must be equal to one of the allowed values: [1,"b",null,[1,{"x":1,"y":2}],{"z":true}]',
      );
    expect(compileSchema({ const: { a: [1] } }, "it")({ a: [2] })).toBe('it must be equal to constant: {"a":[1]}');
    expect(compileSchema({ const: { a: [1] } }, "it")({ a: [1] })).toBeNull();
  });
});

test("what was wrong with a value is not kept", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const wrong = times(20_000, () => "x");
  const numbers = {
    definitions: { all: { items: { type: "number" } } },
    anyOf: [{ $ref: "#/definitions/all" }, { type: "array" }],
  };
  const checks = times(10, () => compileSchema(structuredClone(numbers), "it"));
  collect();
  const before = process.memoryUsage().heapUsed;
  for (const check of checks) expect(check(wrong)).toBeNull();
  collect();
  // Of 200,000 errors, each had some 200 bytes.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(8_000_000);
  expect(checks).toHaveLength(10);
});

test("the cost of a pattern is about what RE2 makes of it", () => {
  expect(patternCost("^[a-z0-9-]{1,63}$")).toBeLessThan(1_000);
  expect(patternCost("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")).toBeLessThan(500);
  expect(patternCost("((a?){31}){32}")).toBeGreaterThan(2_000);
  expect(patternCost("(\\pL{900})".repeat(50))).toBeGreaterThan(45_000);
  expect(patternCost("^[A-Za-z0-9_\\-.]{1,255}$")).toBeLessThan(300);
  expect(patternCost("([ABCDEFGHIJKLMNOPQRSTUVWXYZ]){255}")).toBeLessThan(1_000);
  expect(patternCost("[^][](a?){1000}]")).toBeGreaterThan(2_000);
  expect(patternCost("[[:alpha:]](a?){1000}]")).toBeGreaterThan(2_000);
  expect(patternCost("\\Q[(\\E(a?){1000}]")).toBeGreaterThan(2_000);
  expect(patternCost("(?i)^[a-z0-9à-ÿ_-]{1,63}$")).toBeLessThan(300);
  expect(patternCost("\\x{1000}")).toBeLessThan(10);
  expect(patternCost("a{b}\\{2}[{9}]")).toBeLessThan(20);
});

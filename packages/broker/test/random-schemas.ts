import type { Json, JsonObject } from "@osbert/protocol";
import fc from "fast-check";
import type { Schema } from "../src/index.js";

export const drafts = {
  "draft-04": "http://json-schema.org/draft-04/schema#",
  "draft-06": "http://json-schema.org/draft-06/schema#",
  "draft-07": "http://json-schema.org/draft-07/schema#",
  "2019-09": "https://json-schema.org/draft/2019-09/schema",
  "2020-12": "https://json-schema.org/draft/2020-12/schema",
} as const;

export type DraftName = keyof typeof drafts;

/** So few that schemas and values meet. */
const names = fc.constantFrom("a", "b", "c", "A");
const numbers = fc.constantFrom(-1, 0, 0.5, 1, 2, 3);
const texts = fc.constantFrom("", "a", "b", "ab", "B", "😀");
const patterns = fc.constantFrom("^a", "b", "^[a-c]$", "^.$");

function objectOf<T>(value: fc.Arbitrary<T>, minLength = 0): fc.Arbitrary<Record<string, T>> {
  const entries = fc.uniqueArray(fc.tuple(names, value), { selector: ([name]) => name, minLength, maxLength: 3 });
  return entries.map((all) => Object.fromEntries(all) as Record<string, T>);
}

export const randomValues: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.oneof(fc.constant(null), fc.boolean(), numbers, texts),
    fc.array(tie("value"), { maxLength: 3 }),
    objectOf(tie("value")),
    objectOf(tie("value")),
  ),
})).value;

/**
 * Schemas of a draft, with definitions that refer to one another. What refers to itself does so only from within a property or an
 * item: a validator would never end otherwise.
 */
export function randomSchemas(draft: DraftName): fc.Arbitrary<Schema> {
  const isNew = draft === "2019-09" || draft === "2020-12";
  const isBoolean = draft !== "draft-04";
  const defs = isNew ? "$defs" : "definitions";
  const refs = (...references: readonly string[]) =>
    fc.constantFrom(...references).map(($ref): JsonObject => ({ $ref }));
  const level = (references: readonly string[]): fc.Arbitrary<Json> =>
    fc.letrec<{ schema: Json; inner: Json }>((tie) => {
      const schema = tie("schema");
      const inner = tie("inner");
      return {
        inner: fc.oneof({ weight: 8, arbitrary: schema }, { weight: 1, arbitrary: refs("#", `#/${defs}/one`) }),
        schema: fc.oneof(
          { maxDepth: 3, withCrossShrink: true },
          isBoolean ? fc.boolean() : fc.constant({}),
          ...(references.length > 0 ? [refs(...references)] : []),
          fc.array(fc.oneof(...keywords(draft, schema, inner)), { minLength: 1, maxLength: 4 }).map(together),
        ),
      };
    }).schema;
  const ref = (name: string) => `#/${defs}/${name}`;
  return fc
    .record({
      root: fc.array(level([ref("one"), ref("two"), "#/properties/a"]), { minLength: 1, maxLength: 3 }),
      property: level([ref("two")]),
      one: level([ref("two")]),
      two: level([]),
    })
    .map(({ root, property, one, two }) => {
      const objects = root.filter((schema): schema is JsonObject => typeof schema === "object");
      const all = together([...objects, { properties: { a: property } }]);
      const properties = { ...(all.properties as JsonObject), a: property };
      return { $schema: drafts[draft], ...all, properties, [defs]: { one, two } } as unknown as Schema;
    });
}

/** Of an empty array, Ajv says with `contains` what it said of the array before: only others are compared. */
function together(all: readonly JsonObject[]): JsonObject {
  const schema = Object.assign({}, ...all) as JsonObject;
  return schema.contains === undefined ? schema : { ...schema, minItems: 1 };
}

/** Whatever a draft knows, one at a time. */
function keywords(
  draft: DraftName,
  schema: fc.Arbitrary<Json>,
  inner: fc.Arbitrary<Json>,
): readonly fc.Arbitrary<JsonObject>[] {
  const isOld = draft === "draft-04";
  const isNew = draft === "2019-09" || draft === "2020-12";
  const types = fc.constantFrom("null", "boolean", "integer", "number", "string", "array", "object");
  const small = fc.constantFrom(0, 1, 2);
  const values = randomValues;
  const list = fc.array(schema, { minLength: 1, maxLength: 3 });
  const innerList = fc.array(inner, { minLength: 1, maxLength: 2 });
  const nameList = fc.uniqueArray(names, { minLength: isOld ? 1 : 0, maxLength: 2 });
  const one = (keyword: string, value: fc.Arbitrary<unknown>) =>
    value.map((said): JsonObject => ({ [keyword]: said as Json }));
  const branch = fc.record({ properties: objectOf(inner, 1) });
  const flagOrSchema = fc.oneof(fc.boolean(), inner);
  const propertyNames = fc.oneof(
    fc.boolean(),
    patterns.map((pattern) => ({ pattern })),
    patterns.map((pattern) => ({ type: "string", not: { pattern } })),
    nameList.filter((some) => some.length > 0).map((some) => ({ enum: some })),
    small.map((maxLength) => ({ maxLength })),
    schema,
  );
  const changed = [
    ...(isOld
      ? [
          fc.record({ minimum: numbers, exclusiveMinimum: fc.boolean() }),
          fc.record({ maximum: numbers, exclusiveMaximum: fc.boolean() }),
        ]
      : [
          one("const", values),
          fc.record({ minimum: numbers, exclusiveMinimum: numbers }, { requiredKeys: [] }),
          fc.record({ maximum: numbers, exclusiveMaximum: numbers }, { requiredKeys: [] }),
        ]),
    ...(isNew
      ? [
          one("dependentRequired", objectOf(nameList)),
          one("dependentSchemas", objectOf(schema)),
          fc.record({ contains: inner, minContains: small, maxContains: small }, { requiredKeys: ["contains"] }),
          fc.record({ unevaluatedProperties: inner, allOf: list, properties: objectOf(inner) }),
          fc.record({
            unevaluatedProperties: fc.constant(false),
            anyOf: fc.array(branch, { minLength: 1, maxLength: 2 }),
          }),
          one("unevaluatedProperties", inner),
          one("unevaluatedItems", inner),
        ]
      : []),
  ];
  return [
    fc.record({ type: types, nullable: fc.boolean() }, { requiredKeys: ["type"] }).map(withoutContradiction),
    one("type", fc.uniqueArray(types, { minLength: 1, maxLength: 3 })),
    one("enum", fc.uniqueArray(values, { minLength: 1, maxLength: 3, comparator: "SameValueZero" }).map(unlike)),
    one("multipleOf", fc.constantFrom(0.5, 1, 2)),
    one("minLength", small),
    one("maxLength", small),
    one("pattern", patterns),
    one("minItems", small),
    one("maxItems", small),
    one("uniqueItems", fc.boolean()),
    one("minProperties", small),
    one("maxProperties", small),
    one("required", nameList),
    one("properties", objectOf(inner)),
    one(
      "patternProperties",
      fc.dictionary(patterns, inner, { maxKeys: 2 }).map((said) => ({ ...said })),
    ),
    one("additionalProperties", flagOrSchema),
    one("dependencies", objectOf(fc.oneof(nameList, schema))),
    one("allOf", list),
    one("anyOf", list),
    one("oneOf", list),
    one("not", schema),
    one("title", fc.constant("A title")),
    one("if", schema),
    ...[
      ["if", "then"],
      ["if", "then", "else"],
      ["if", "else"],
    ].map((all) =>
      fc
        .tuple(...all.map(() => schema))
        .map((said): JsonObject => Object.fromEntries(all.map((keyword, at) => [keyword, said[at] as Json]))),
    ),
    one("contains", inner),
    one("propertyNames", isOld ? propertyNames.filter((said) => typeof said !== "boolean") : propertyNames),
    draft === "2020-12"
      ? fc.record({ prefixItems: innerList, items: inner }, { requiredKeys: ["prefixItems"] })
      : fc.record({ items: innerList, additionalItems: flagOrSchema }, { requiredKeys: ["items"] }),
    one("items", inner),
    // Three times as often: they are what is translated.
    ...[changed, changed, changed].flat(),
  ] as unknown as readonly fc.Arbitrary<JsonObject>[];
}

function withoutContradiction({ type, nullable }: { type: string; nullable?: boolean }): JsonObject {
  return nullable === undefined || type === "null" ? { type } : { type, nullable };
}

/** Draft-04 wants the values of an enum to differ; equal objects do not. */
function unlike(values: readonly Json[]): readonly Json[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
}

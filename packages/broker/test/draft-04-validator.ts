import type { Json, JsonObject } from "@osbert/protocol";

/**
 * Draft-04 as its specification has it, and nothing else: what stands beside `$ref` is ignored, later keywords are unknown. The
 * validators at hand are more generous, so that they do not show what a strict platform would see.
 */
export function isValidDraft04(root: JsonObject, value: Json): boolean {
  return valid(root, root, value);
}

function valid(root: JsonObject, schema: JsonObject, value: Json): boolean {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) throw new Error("draft-04: not a schema");
  if (typeof schema.$ref === "string") return valid(root, resolve(root, schema.$ref), value);
  return Object.entries(schema).every(
    ([keyword, said]) =>
      (Object.hasOwn(rules, keyword) ? rules[keyword] : undefined)?.(said as never, value, schema, root) ?? true,
  );
}

function resolve(root: JsonObject, reference: string): JsonObject {
  if (!reference.startsWith("#")) throw new Error(`draft-04: external reference ${reference}`);
  let at: Json = root;
  for (const name of reference.slice(1).split("/").slice(1)) {
    at = (at as JsonObject)[decodeURIComponent(name).replaceAll("~1", "/").replaceAll("~0", "~")] as Json;
  }
  if (at === undefined) throw new Error(`draft-04: ${reference} leads nowhere`);
  return at as JsonObject;
}

type Schemas = Readonly<Record<string, JsonObject>>;
// biome-ignore lint/suspicious/noExplicitAny: each rule knows what its keyword holds.
type Rule = (said: any, value: any, schema: JsonObject, root: JsonObject) => boolean;

const rules: Readonly<Record<string, Rule>> = {
  type: (types: string | string[], value) => [types].flat().some((type) => isOfType(type, value)),
  enum: (values: Json[], value) => values.some((one) => equal(one, value)),
  minimum: (least: number, value, { exclusiveMinimum }) =>
    typeof value !== "number" || (exclusiveMinimum === true ? value > least : value >= least),
  maximum: (most: number, value, { exclusiveMaximum }) =>
    typeof value !== "number" || (exclusiveMaximum === true ? value < most : value <= most),
  multipleOf: (of: number, value) => typeof value !== "number" || Number.isInteger(value / of),
  minLength: (least: number, value) => typeof value !== "string" || Array.from(value).length >= least,
  maxLength: (most: number, value) => typeof value !== "string" || Array.from(value).length <= most,
  pattern: (pattern: string, value) => typeof value !== "string" || new RegExp(pattern, "u").test(value),
  minItems: (least: number, value) => !Array.isArray(value) || value.length >= least,
  maxItems: (most: number, value) => !Array.isArray(value) || value.length <= most,
  uniqueItems: (wanted: boolean, value) =>
    !wanted ||
    !Array.isArray(value) ||
    value.every((one, at) => !value.slice(0, at).some((other) => equal(one, other))),
  items: (items: JsonObject | JsonObject[], value, { additionalItems }, root) =>
    !Array.isArray(value) ||
    value.every((item, at) => {
      const schema = Array.isArray(items) ? (items[at] ?? additionalItems) : items;
      return typeof schema === "boolean" || schema === undefined
        ? schema !== false
        : valid(root, schema as JsonObject, item);
    }),
  minProperties: (least: number, value) => !isObject(value) || Object.keys(value).length >= least,
  maxProperties: (most: number, value) => !isObject(value) || Object.keys(value).length <= most,
  required: (names: string[], value) => !isObject(value) || names.every((name) => Object.hasOwn(value, name)),
  properties: (schemas: Schemas, value, _, root) =>
    !isObject(value) ||
    Object.entries(schemas).every(
      ([name, schema]) => !Object.hasOwn(value, name) || valid(root, schema, value[name] as Json),
    ),
  patternProperties: (schemas: Schemas, value, _, root) =>
    !isObject(value) ||
    Object.entries(schemas).every(([pattern, schema]) =>
      Object.entries(value).every(
        ([name, inner]) => !new RegExp(pattern, "u").test(name) || valid(root, schema, inner),
      ),
    ),
  additionalProperties: (said: boolean | JsonObject, value, { properties = {}, patternProperties = {} }, root) =>
    !isObject(value) ||
    Object.entries(value).every(
      ([name, inner]) =>
        Object.hasOwn(properties as object, name) ||
        Object.keys(patternProperties as object).some((pattern) => new RegExp(pattern, "u").test(name)) ||
        (typeof said === "boolean" ? said : valid(root, said, inner)),
    ),
  dependencies: (all: Readonly<Record<string, string[] | JsonObject>>, value, _, root) =>
    !isObject(value) ||
    Object.entries(all).every(([name, needed]) => {
      if (!Object.hasOwn(value, name)) return true;
      return Array.isArray(needed) ? needed.every((one) => Object.hasOwn(value, one)) : valid(root, needed, value);
    }),
  allOf: (all: JsonObject[], value, _, root) => all.every((schema) => valid(root, schema, value)),
  anyOf: (any: JsonObject[], value, _, root) => any.some((schema) => valid(root, schema, value)),
  oneOf: (one: JsonObject[], value, _, root) => one.filter((schema) => valid(root, schema, value)).length === 1,
  not: (schema: JsonObject, value, _, root) => !valid(root, schema, value),
};

function isOfType(type: string, value: Json): boolean {
  if (type === "integer") return Number.isInteger(value);
  const own = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  return own === type;
}

function isObject(value: Json): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function equal(one: Json, other: Json): boolean {
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, at) => equal(item, other[at] as Json));
  if (!isObject(one) || !isObject(other)) return one === other;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && equal(one[name] as Json, other[name] as Json))
  );
}

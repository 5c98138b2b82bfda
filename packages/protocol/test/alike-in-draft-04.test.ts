import fc from "fast-check";
import { expect, test } from "vitest";
import { type Json, type JsonObject, toDraft04 } from "../src/index.js";
import { isAlikeInDraft04 } from "../src/schemas/alike-in-draft-04.js";
import { translate } from "../src/schemas/to-draft-04.js";

const drafts = [
  "http://json-schema.org/draft-04/schema#",
  "http://json-schema.org/draft-07/schema#",
  "https://json-schema.org/draft/2019-09/schema",
  "https://json-schema.org/draft/2020-12/schema",
];

/** One of some, drawn by a number that a seed leads to. */
function chooser(seed: number) {
  let state = seed >>> 0;
  return <Item>(items: readonly Item[]): Item => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return items[(state >>> 8) % items.length] as Item;
  };
}

/** Schemas as people write them, and some that nobody should: with few keywords each, so that many are of draft-04 already. */
function schemaOf(seed: number): JsonObject {
  const pick = chooser(seed);
  const names = ["a", "b", "2", "1", "__proto__", "type", "$ref"];
  const list = <Item>(make: () => Item) => Array.from({ length: pick([0, 1, 2]) }, make);
  const inner = (depth: number): Json =>
    depth === 0 ? pick<Json>([{}, true, 7]) : pick([schema, schema, other])(depth);
  const other = (): Json => pick<Json>([true, false, null, 7, "x", [], {}]);
  const usual: readonly (readonly [string, (depth: number) => Json])[] = [
    ["title", () => "t"],
    ["default", other],
    ["type", () => pick<Json>(["string", "object", ["array", "null"], 7])],
    ["enum", () => pick<Json>([["x", "y"], ["x", "x"], ["x", 1], [], 7])],
    ["minimum", () => pick<Json>([0, 1, "1"])],
    ["maximum", () => pick<Json>([0, 1])],
    ["maxProperties", () => 3],
    ["required", () => pick<Json>([["a"], [], 7])],
    ["properties", (depth) => Object.fromEntries(list(() => [pick(names), inner(depth - 1)]))],
    ["additionalProperties", (depth) => inner(depth - 1)],
    ["items", (depth) => pick([() => inner(depth - 1), () => list(() => inner(depth - 1))])()],
    ["anyOf", (depth) => list(() => inner(depth - 1))],
  ];
  const rare: typeof usual = [
    ["nullable", () => pick([true, false])],
    ["const", other],
    ["exclusiveMinimum", () => pick<Json>([1, true])],
    ["prefixItems", (depth) => list(() => inner(depth - 1))],
    ["allOf", (depth) => list(() => inner(depth - 1))],
    ["not", (depth) => inner(depth - 1)],
    ["propertyNames", (depth) => inner(depth - 1)],
    ["$id", () => "urn:x"],
    ["$schema", () => pick(drafts)],
    ["x-own", other],
  ];
  const schema = (depth: number): JsonObject =>
    Object.fromEntries(
      Array.from({ length: pick([0, 1, 2, 3, 4]) }, () => {
        const [keyword, make] = pick(pick([usual, usual, usual, usual, usual, usual, rare]));
        return [keyword, make(depth)];
      }),
    );
  return { $schema: pick(drafts), ...schema(3) };
}

test("what is said to be in the words of draft-04 already is what its translation says, letter by letter", () => {
  let alike = 0;
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const schema = schemaOf(seed);
      const { $schema: _, ...keywords } = schema;
      if (isAlikeInDraft04(keywords, 20)) alike += 1;
      expect(JSON.stringify(toDraft04(schema))).toBe(JSON.stringify(translate(schema)));
    }),
    { numRuns: 10_000 },
  );
  expect(alike).toBeGreaterThan(1_000);
});

test("the usual schema of parameters needs no translation, and others do", () => {
  const usual = {
    type: "object",
    properties: {
      name: { type: "string", pattern: "^[a-z]{1,40}$", enum: ["a", "b"] },
      size: { type: "integer", minimum: 1, maximum: 100 },
      tags: { type: "array", items: { type: "string" } },
    },
    required: ["name"],
    additionalProperties: false,
  };
  expect(isAlikeInDraft04(usual, 20)).toBe(true);
  expect(isAlikeInDraft04(usual, 2)).toBe(false);
  for (const other of [{ const: 1 }, { exclusiveMinimum: 1, minimum: 1 }, { required: [] }, { enum: ["a", "a"] }])
    expect(isAlikeInDraft04({ ...usual, ...other } as JsonObject, 20)).toBe(false);
});

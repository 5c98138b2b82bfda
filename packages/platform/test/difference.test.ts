import fc from "fast-check";
import { expect, test } from "vitest";
import { propertySeed } from "../../../tools/property-seed.js";
import { difference } from "../src/decisions/difference.js";
import { JsonTextError, parseJsonText, sameJson } from "../src/decisions/json-text.js";
import { applyText, mergeParameters } from "../src/decisions/project.js";
import type { AppliedState } from "../src/records/instance-record.js";

const small = { id: "s", name: "small" };
const large = { id: "l", name: "large" };
const state = (parameters: string | null, more: Partial<AppliedState> = {}): AppliedState => ({
  plan: small,
  parameters,
  maintenance: null,
  ...more,
});

test.each([
  ["nothing", state('{"a":1}'), state(' {"a" : 1} '), []],
  ["E10-41: null is a value", state('{"a":1}'), state('{"a":null}'), ["replace /parameters/a 1 null"]],
  ["a member that was not there", state(null), state('{"a":null}'), ["add /parameters/a undefined null"]],
  ["a member that goes", state('{"a":{"x":1,"y":2}}'), state('{"a":{"x":1}}'), ["remove /parameters/a/y 2 undefined"]],
  [
    "E10-42: numbers by their text",
    state('{"n":9007199254740992}'),
    state('{"n":9007199254740993}'),
    ["replace /parameters/n 9007199254740992 9007199254740993"],
  ],
  ["escapes in texts are no change", state('{"a":"\\u0061"}'), state('{"a":"a"}'), []],
  ["names as pointers", state(null), state('{"a/b~c":1}'), ["add /parameters/a~1b~0c undefined 1"]],
  ["__proto__ is a name", state('{"__proto__":1}'), state('{"__proto__":2}'), ["replace /parameters/__proto__ 1 2"]],
  ["lists are one value", state('{"a":[1,2]}'), state('{"a":[2,1]}'), ["replace /parameters/a [1,2] [2,1]"]],
  [
    "another plan takes the maintenance version along",
    state(null, { maintenance: "1" }),
    state(null, { plan: large }),
    ['replace /plan "small" "large"'],
  ],
  ["an upgrade", state(null), state(null, { maintenance: "2" }), ['add /maintenance undefined "2"']],
] as const)("difference: %s", (_what, before, after, expected) => {
  expect(difference(before, after).map(({ op, path, old, value }) => `${op} ${path} ${old} ${value}`)).toEqual(
    expected,
  );
});

test("difference: more paths than can be told are told by their members", () => {
  const many = (value: number) =>
    JSON.stringify({ a: Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`k${index}`, value])), b: 1 });
  expect(difference(state(many(1)), state(many(2))).map(({ path }) => path)).toEqual(["/parameters/a"]);
});

test("what was said later goes over what was said before, member by member, as it was written", () => {
  expect(mergeParameters('{"a":1.0,"b":{"x":1}}', '{"b":{"y":2},"c":1e400}')).toBe('{"a":1.0,"b":{"y":2},"c":1e400}');
  const text = { plan: large, parameters: '{"a":2}', maintenance: null };
  expect(applyText(state('{"a":1}', { maintenance: "1" }), text)).toEqual(state('{"a":2}', { plan: large }));
});

test.each([
  ["not JSON", "{", "it is not JSON"],
  ["too deep", `${"[".repeat(200)}${"]".repeat(200)}`, "nested deeper"],
  ["too many", `[${"1,".repeat(30_000)}1]`, "more than 20000 values"],
  ["too long", `"${"x".repeat(300_000)}"`, "more than 262144 characters"],
  ["E10-40: a name twice", '{"a":1,"\\u0061":2}', 'the name "a" comes twice'],
  ["a long name twice", `{"${"n".repeat(500)}":1,"${"n".repeat(500)}":2}`, `the name "${"n".repeat(99)}…" comes twice`],
])("a text is refused: %s", (_what, text, message) => {
  expect(() => parseJsonText(text)).toThrow(JsonTextError);
  expect(() => parseJsonText(text)).toThrow(message);
});

test("every JSON is read as JSON.parse reads it, and each piece of its text is the text of that piece", () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(2), (json, indent) => {
      const text = JSON.stringify(JSON.parse(json), null, indent);
      const node = parseJsonText(text);
      expect(JSON.parse(node.text)).toEqual(JSON.parse(text));
      if (node.kind === "object")
        for (const [name, member] of node.members)
          expect(JSON.parse(member.text)).toEqual((JSON.parse(text) as Record<string, unknown>)[name]);
      if (node.kind === "array")
        expect(node.items.map((item) => JSON.parse(item.text) as unknown)).toEqual(JSON.parse(text));
      expect(sameJson(node, parseJsonText(JSON.stringify(JSON.parse(text))))).toBe(true);
    }),
    { ...propertySeed(), numRuns: 200 },
  );
});

test("applied with its difference: what an update leads to differs by nothing but what it says", () => {
  const object = fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 });
  fc.assert(
    fc.property(object, object, (before, wanted) => {
      const text = { plan: null, parameters: JSON.stringify(wanted), maintenance: null };
      const after = applyText(state(JSON.stringify(before)), text);
      expect(difference(after, applyText(after, text))).toEqual([]);
      const named = new Set(Object.keys(wanted).map((name) => name.replaceAll("~", "~0").replaceAll("/", "~1")));
      for (const { path } of difference(state(JSON.stringify(before)), after))
        expect(named).toContain(path.split("/")[2] ?? "");
    }),
    { ...propertySeed(), numRuns: 200 },
  );
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { memberText } from "../../src/api/member-text.js";
import { jsonText, writeJson } from "../../src/api/write-json.js";

test.each([
  ['{"parameters":{"n":12345678901234567890}}', '{"n":12345678901234567890}'],
  [' { "a" : ":,{}" , "parameters" : [ 1 , {"parameters":2} ] , "b":1 } ', '[ 1 , {"parameters":2} ]'],
  ['{"\\u0070arameters":"x\\"}"}', '"x\\"}"'],
  ['{"parameters":1,"parameters":2}', "2"],
  ['{"a":{"parameters":1},"b":["parameters",2],"c":"parameters"}', undefined],
  ["{}", undefined],
])("the member parameters of %s", (json, text) => {
  expect(memberText(json, "parameters")).toBe(text);
});

/** More than by default with OSBERT_FUZZ_RUNS. */
const numRuns = Number(process.env.OSBERT_FUZZ_RUNS ?? 300);
const names = fc.oneof(fc.constantFrom("parameters", "a", "__proto__", 'q"', "\\"), fc.string());

test("it is what JSON.parse finds, whatever the object is, and however it is spaced", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(names, fc.jsonValue())),
      fc.constantFrom("", " ", "\n\t "),
      names,
      (members, space, name) => {
        const text = members.map(
          ([key, value]) => `${space}${JSON.stringify(key)}${space}:${JSON.stringify(value, null, space)}`,
        );
        const json = `{${text.join(`${space},`)}${space}}`;
        const parsed = JSON.parse(json) as Record<string, unknown>;
        const found = memberText(json, name);
        if (!Object.hasOwn(parsed, name)) expect(found).toBeUndefined();
        else expect(JSON.parse(found ?? "nothing")).toEqual(parsed[name]);
      },
    ),
    { numRuns },
  );
});

test("what is written is what JSON.stringify writes, but for texts that are JSON already", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(writeJson(value)).toBe(JSON.stringify(value));
      expect(writeJson({ a: [jsonText(JSON.stringify(value))], b: undefined })).toBe(
        `{"a":[${JSON.stringify(value)}]}`,
      );
    }),
    { numRuns },
  );
});

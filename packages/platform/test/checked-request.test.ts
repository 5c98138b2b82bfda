import { expect, test } from "vitest";
import { checkParameters } from "../src/queue/checked-request.js";

const nested = (levels: number) => `{"a":${"[".repeat(levels)}${"]".repeat(levels)}}`;

test.each([
  undefined,
  "{}",
  '{"a":1,"b":[true,null,{"c":"d"}]}',
  '{"__proto__":{"a":1}}',
  '{ "a" : 1 }',
  '{"a":9007199254740993,"b":1e2,"2":0,"1":0}',
  nested(90),
])("parameters that can be taken: %s", (text) => {
  expect(() => checkParameters(text)).not.toThrow();
});

test.each([
  ["a name that comes twice", '{"a":1,"a":1}'],
  ["a name that comes twice, deep inside and written otherwise", '{"a":[{"b":1,"\\u0062":1}]}'],
  ["no object", "[]"],
  ["no object", '"{}"'],
  ["no JSON", "{a:1}"],
  ["nothing", ""],
  ["too many levels", nested(120)],
])("short parameters that cannot: %s", (_, text) => {
  expect(() => checkParameters(text)).toThrow(expect.objectContaining({ code: "invalid" }));
});

import { checkOrRefuse, compileSchema, defaultDraft, type Schema, type TooMuchWork } from "@osbert/server/schemas";
import { describe, expect, test } from "vitest";

const plain = { type: "object", properties: { a: { type: "string" } } } as const;

describe("one schema says nothing of another", () => {
  test.each([
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2020-12/schema",
    "http://json-schema.org/draft-04/schema",
  ])("one that calls itself %s does not take the draft away from all others", (draft) => {
    const $schema = `${draft}#`;
    const calls = draft.includes("draft-04") ? { id: draft } : { $id: draft };
    expect(() => compileSchema({ $schema, ...calls, type: "object" }, "it")).toThrow("is not a valid schema");
    expect(compileSchema({ $schema, ...plain }, "it")({ a: 1 })).toBe("it.a must be string");
  });

  test("ids inside of one are not known to the next, nor in its way", () => {
    const first = { properties: { a: { $id: "http://example.org/inside", type: "string" } } };
    compileSchema(first, "first");
    expect(() => compileSchema({ properties: { b: { $ref: "http://example.org/inside" } } }, "second")).toThrow(
      "can't resolve reference http://example.org/inside",
    );
    const other = compileSchema(
      {
        properties: {
          a: { $id: "http://example.org/inside", type: "integer" },
          b: { $ref: "http://example.org/inside" },
        },
      },
      "other",
    );
    expect(other({ b: "text" })).toBe("other.b must be integer");
  });

  test("references to what a draft says of schemas still hold", () => {
    const schema = { $schema: defaultDraft, properties: { schema: { $ref: defaultDraft } } };
    expect(compileSchema(schema, "it")({ schema: { type: "strin" } })).toMatch(/^it.schema.type must/);
  });
});

test("a schema that is referred to in many places is compiled once: it took minutes and gigabytes", () => {
  const properties = (count: number, schema: Schema) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, schema]));
  const big = { type: "object", properties: properties(600, { type: "string", pattern: "^a+$" }) };
  const schema = { definitions: { big }, properties: properties(800, { $ref: "#/definitions/big" }) };
  expect(compileSchema(schema, "it")({ p799: { p599: "b" } })).toBe('it.p799.p599 must match pattern "^a+$"');
});

test("a schema cannot ask to be run later: a refusal that nobody waited for ended the process", () => {
  const schema = { $async: true, type: "string" };
  expect(() => compileSchema(schema, "it")).toThrow("it is not a valid schema: $async is not a keyword");
  expect(() => compileSchema({ properties: { a: schema } }, "it")).toThrow("it is not a valid schema: async schema");
});

test("a schema that is only judged is judged as one that is compiled, and the next one is compiled as ever", () => {
  const told: TooMuchWork[] = [];
  const judge = (schema: Schema) => checkOrRefuse(schema, "it", (error) => told.push(error));
  expect(() => judge({ properties: { a: { $ref: "#/nowhere" } } })).toThrow("can't resolve reference #/nowhere");
  expect(() => judge({ properties: { a: { pattern: "(?=a)" } } })).toThrow("it is not a valid schema");
  expect(told).toEqual([]);
  const names = Array.from({ length: 3_000 }, (_, index) => [
    `p${index}`,
    { $ref: `#/properties/p${(index + 1) % 3_000}` },
  ]);
  judge({ properties: Object.fromEntries(names) });
  expect(told.map(({ message }) => message)).toEqual([expect.stringMatching(/too much work to compile/)]);
  judge(plain);
  expect(compileSchema(plain, "it")({ a: 1 })).toBe("it.a must be string");
});

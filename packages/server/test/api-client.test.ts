import { describe, expect, expectTypeOf, test } from "vitest";
import {
  anything,
  apiClient,
  choice,
  described,
  list,
  nullable,
  number,
  object,
  oneOf,
  optional,
  page,
  ShapeError,
  text,
} from "../src/client/index.js";

const routes = [
  ["GET", "/things", "things"],
  ["GET", "/things/:thing/parts/:part", "part"],
  ["POST", "/things/:thing/stop", "stop"],
] as const;

const descriptions = {
  things: { query: ["limit", "after"], answer: page(object({ id: text, size: nullable(number) })) },
  part: { answer: object({ tags: list(oneOf(text, number)), note: optional(text) }) },
  stop: { answer: object({}) },
} as const;

/** A client whose requests are kept, and answered with this. */
function clientOf(answer: unknown) {
  const sent: unknown[] = [];
  const client = apiClient(routes, descriptions, async (...request) => {
    sent.push(request);
    return answer;
  });
  return { client, sent };
}

describe("a client of one's own API", () => {
  test("asks by the names of routes, with values of the path encoded, and answers with the described type", async () => {
    const { client, sent } = clientOf({ items: [{ id: "a", size: null }], next: "n", more: true });
    const things = await client("things", {}, { query: { limit: "5" } });
    expectTypeOf(things.items[0]?.size).toEqualTypeOf<number | null | undefined>();
    expect(things).toEqual({ items: [{ id: "a", size: null }], next: "n", more: true });
    await clientOf({}).client("stop", { thing: "a" }, { body: { reason: "x" } });
    expect(sent).toEqual([["GET", "/things", { query: { limit: "5" }, body: undefined }]]);
    const other = clientOf({ tags: ["a", 1] });
    expect(await other.client("part", { thing: "a/b", part: "../%" })).toEqual({ tags: ["a", 1] });
    expect(other.sent).toEqual([["GET", "/things/a%2Fb/parts/..%2F%25", { query: {}, body: undefined }]]);
  });

  test.each([
    [null, "the answer must be an object"],
    [[], "the answer must be an object"],
    [{}, "items must be a list"],
    [{ items: {}, next: null }, "items must be a list"],
    [{ items: [null], next: null }, "items[0] must be an object"],
    [
      {
        items: [
          { id: "a", size: 1 },
          { id: 7, size: 1 },
        ],
        next: null,
      },
      "items[1].id must be a text",
    ],
    [{ items: [{ id: "a", size: "big secret" }], next: null }, "items[0].size must be a number"],
    [{ items: [{ id: "a" }], next: null }, "items[0].size must be a number"],
    [{ items: [] }, "next must be a text"],
    [JSON.parse('{ "__proto__": { "items": [], "next": null } }'), "items must be a list"],
  ])("refuses %j, and says where it is not what it must be, but not what it is", async (answer, message) => {
    await expect(clientOf(answer).client("things", {})).rejects.toEqual(new ShapeError(message));
  });
});

describe("the schema of a shape", () => {
  test("says what the shape says", () => {
    const shape = object({
      id: described(text, "Its id."),
      kind: choice(["a", "b"]),
      size: nullable(number),
      note: optional(text),
      any: anything,
    });
    expect(shape.schema).toEqual({
      type: "object",
      properties: {
        id: { type: "string", description: "Its id." },
        kind: { type: "string", enum: ["a", "b"] },
        size: { anyOf: [{ type: "number" }, { type: "null" }] },
        note: { type: "string" },
        any: {},
      },
      required: ["id", "kind", "size"],
    });
    expect(() => shape({ id: "x", kind: "c", size: null })).toThrow(new ShapeError("kind must be one of a, b"));
    expect(shape({ id: "x", kind: "b", size: null })).toEqual({ id: "x", kind: "b", size: null });
  });
});

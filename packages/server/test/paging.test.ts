import { expect, test } from "vitest";
import { readPaging } from "../src/index.js";

test("limit and after of a query are read; both may be left out", () => {
  expect(readPaging(new URLSearchParams())).toEqual({});
  expect(readPaging(new URLSearchParams({ limit: "500", after: "a/b" }))).toEqual({ limit: 500, after: "a/b" });
});

test.each([
  [{ limit: "0" }, "limit must be a whole number from 1 to 500"],
  [{ limit: "501" }, "limit must be a whole number from 1 to 500"],
  [{ limit: "1.5" }, "limit must be a whole number from 1 to 500"],
  [{ limit: "" }, "limit must be a whole number from 1 to 500"],
  [{ after: "" }, "after must be what an earlier page gave as next"],
  [{ after: "a\u0000" }, "after must be what an earlier page gave as next"],
  [{ after: "a".repeat(4_001) }, "after is too long"],
])("%j is a 400", (query: Record<string, string>, message) => {
  expect(() => readPaging(new URLSearchParams(query))).toThrow(expect.objectContaining({ status: 400, message }));
});

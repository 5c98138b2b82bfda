import { describe, expect, expectTypeOf, test } from "vitest";
import { routeTable } from "../src/index.js";

const table = routeTable(
  [
    ["GET", "/things", "list"],
    ["GET", "/things/:thing", "show"],
    ["DELETE", "/things/:thing", "remove"],
    ["PUT", "/things/:thing/parts/:part", "add"],
  ],
  "nothing here",
);

describe("a route table", () => {
  test("finds the route of a method and a path, with its values; those that the path does not have are empty", () => {
    expect(table.match("GET", "/things")).toEqual({ name: "list", thing: "", part: "" });
    expect(table.match("PUT", "/things/a/parts/b")).toEqual({ name: "add", thing: "a", part: "b" });
    expectTypeOf(table.match("GET", "/things").name).toEqualTypeOf<"list" | "show" | "remove" | "add">();
    expectTypeOf(table.match("GET", "/things").part).toEqualTypeOf<string>();
  });

  test("takes HEAD for GET", () => {
    expect(table.match("HEAD", "/things/a").name).toBe("show");
  });

  test("decodes a value once: an encoded slash or percent sign is part of it", () => {
    expect(table.match("GET", "/things/a%2Fb").thing).toBe("a/b");
    expect(table.match("GET", "/things/a%252Fb").thing).toBe("a%2Fb");
    expect(() => table.match("GET", "/things/%zz")).toThrow(expect.objectContaining({ status: 400 }));
  });

  test.each(["/things/", "/things//", "/Things", "/things/a/parts/", "//things", ""])("has nothing at %j", (path) => {
    expect(() => table.match("GET", path)).toThrow(expect.objectContaining({ status: 404, message: "nothing here" }));
  });

  test("says which methods are possible at a path that is right", () => {
    const refused = expect.objectContaining({ status: 405, allow: "GET, DELETE" });
    expect(() => table.match("PATCH", "/things/a")).toThrow(refused);
    expect(table.refusal("BREW", "/things/a")).toEqual(refused);
    expect(table.refusal("BREW", "/things/a").message).toBe("BREW is not possible here; GET, DELETE are");
    expect(table.refusal("BREW", "/things").message).toBe("BREW is not possible here; GET is");
    expect(table.refusal("X".repeat(10_000), "/things").message.length).toBeLessThan(100);
  });
});

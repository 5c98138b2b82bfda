import { expect, test } from "vitest";
import { withOneReplaced } from "../src/catalog/with-one-replaced.js";

test.each(["b", "new"])("a map with %s replaced is in all ways as a copy in which it was set", (key) => {
  const map = new Map([
    ["a", 1],
    ["b", 2],
    ["c", 3],
  ]);
  const copy = new Map(map).set(key, 9);
  const replaced = withOneReplaced(map, key, 9);
  expect(replaced.size).toBe(copy.size);
  expect([...replaced]).toEqual([...copy]);
  expect([...replaced.keys()]).toEqual([...copy.keys()]);
  expect([...replaced.values()]).toEqual([...copy.values()]);
  for (const each of ["a", "b", "c", "new", "none"])
    expect([replaced.get(each), replaced.has(each)]).toEqual([copy.get(each), copy.has(each)]);
  const seen: unknown[] = [];
  replaced.forEach((value, at, whole) => seen.push([at, value, whole === replaced]));
  expect(seen).toEqual([...copy].map(([at, value]) => [at, value, true]));
  expect(map.get("b")).toBe(2);
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { LayeredMap } from "../src/catalog/layered-map.js";

const key = fc.integer({ min: 0, max: 60 });
const changes = fc.array(fc.tuple(key, fc.boolean()), { maxLength: 12 });

test("whatever was changed, it is as a map that was copied and changed, and none before it has changed", () => {
  fc.assert(
    fc.property(fc.array(key, { maxLength: 60 }), fc.array(changes, { maxLength: 12 }), (first, steps) => {
      const valued = (name: number) => ({ name });
      const copies = [new Map(first.map((name) => [name, valued(name)]))];
      const layered = [LayeredMap.of(new Map(copies[0]))];
      for (const step of steps) {
        const changed = step.map(([name, stays]) => [name, stays ? valued(name) : undefined] as const);
        const copy = new Map(copies.at(-1));
        for (const [name, value] of changed)
          if (value === undefined) copy.delete(name);
          else copy.set(name, value);
        copies.push(copy);
        layered.push((layered.at(-1) ?? LayeredMap.of()).with(changed));
      }
      for (const [index, copy] of copies.entries()) {
        const map = layered[index] ?? LayeredMap.of();
        expect(map.size).toBe(copy.size);
        expect(new Map(map)).toEqual(copy);
        for (let name = 0; name <= 60; name++) {
          expect(map.get(name)).toBe(copy.get(name));
          expect(map.has(name)).toBe(copy.has(name));
        }
        const seen: [number, object][] = [];
        map.forEach((value, name, whole) => {
          expect(whole).toBe(map);
          seen.push([name, value]);
        });
        expect(seen).toEqual([...map]);
        expect([...map.keys()]).toEqual(seen.map(([name]) => name));
        expect([...map.values()]).toEqual(seen.map(([, value]) => value));
        for (const [other, before] of copies.entries()) {
          const names = Array.from({ length: 61 }, (_, name) => name);
          const different = names.filter((name) => copy.get(name) !== before.get(name));
          const found = map.differsFrom(layered[other] ?? LayeredMap.of());
          expect([...found].sort((one, two) => one - two)).toEqual(different);
        }
      }
    }),
    { numRuns: 60 },
  );
});

test("what is put in place of something stands in its place, and what changes nothing is the same map", () => {
  const [one, two, three] = [{}, {}, {}];
  const map = LayeredMap.of(new Map(Object.entries({ one, two })));
  expect([...map.with([["three", three]]).with([["one", three]])]).toEqual([
    ["one", three],
    ["two", two],
    ["three", three],
  ]);
  expect(map.with([["one", one]])).toBe(map);
  expect(map.with([["none", undefined]])).toBe(map);
});

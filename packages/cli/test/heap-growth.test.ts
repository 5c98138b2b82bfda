import { expect, test } from "vitest";
import { boundHeapGrowth } from "../src/serve/heap-growth.js";

test("garbage of the start is gone when the server runs, and nobody else can ask for that", () => {
  const held: { garbage?: object } = {
    garbage: Array.from({ length: 200_000 }, (_, number) => ({ text: `garbage ${number}` })),
  };
  const before = process.memoryUsage().heapUsed;
  delete held.garbage;
  boundHeapGrowth();
  expect(process.memoryUsage().heapUsed).toBeLessThan(before - 5_000_000);
  expect("gc" in globalThis).toBe(false);
});

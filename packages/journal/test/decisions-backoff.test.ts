import { expect, test } from "vitest";
import { defaultBackoff, nextDelayMs } from "../src/decisions/backoff.js";

const [lowest, middle, highest] = [() => 0, () => 0.5, () => 1];

test.each([
  [1, 500],
  [2, 1_000],
  [3, 2_000],
  [7, 32_000],
  [8, 60_000],
  [50, 60_000],
  [5_000, 60_000],
])("after %i failures in a row the next attempt is at most %i ms away", (failures, ms) => {
  expect(nextDelayMs(failures, highest)).toBe(ms);
});

test("jitter spreads over the upper half", () => {
  expect([lowest, middle, highest].map((random) => nextDelayMs(3, random))).toEqual([1_000, 1_500, 2_000]);
});

test("no failure counts as one", () => {
  expect(nextDelayMs(0, highest)).toBe(defaultBackoff.firstMs);
  expect(nextDelayMs(-3, highest)).toBe(defaultBackoff.firstMs);
});

test("a kind may have its own pace", () => {
  const backoff = { firstMs: 100, factor: 10, longestMs: 5_000 };
  expect([1, 2, 3, 4].map((failures) => nextDelayMs(failures, highest, backoff))).toEqual([100, 1_000, 5_000, 5_000]);
});

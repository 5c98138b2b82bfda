import { describe, expect, test } from "vitest";
import { inTurn, laneOf, nextLook, overdue, runnable } from "../src/decisions/schedule.js";
import { names, operation, queue, stateOf } from "./operations.js";

describe("in turn (x exclusive, s shared, ! held)", () => {
  test.each([
    ["", ""],
    ["x1", "x1"],
    ["x1 x2 s1", "x1"],
    ["s1 s2 s3", "s1 s2 s3"],
    ["s1 s2 x1 s3", "s1 s2"],
    ["x1! x2 x3", "x2"],
    ["s1! s2 x1", "s2"],
    ["x1! s1 s2 x2", "s1 s2"],
    ["s1 x1! s2 x2", "s1 s2"],
    ["x1! s1! x2!", ""],
    ["x1@99 x2", "x1"],
    ["s1@99 s2 x1", "s1 s2"],
  ])("%s → %s", (open, expected) => {
    expect(names(inTurn(queue(open)))).toBe(expected);
  });
});

describe("runnable at 10 (@ ready at, ~ cancelled)", () => {
  test.each([
    ["x1@10 x2", "x1"],
    ["x1@11 x2", ""],
    ["s1@11 s2@10 s3 x1", "s2 s3"],
    ["x1~ x2", ""],
    ["s1~ s2", "s2"],
  ])("%s → %s", (open, expected) => {
    expect(names(runnable(stateOf(open), 10))).toBe(expected);
  });
});

describe("overdue at 10 († deadline)", () => {
  test.each([
    ["x1†10 x2†11 x3†9", "x1 x3"],
    ["x1 s1~ x2†99", "s1"],
    ["x1!†5", "x1"],
  ])("%s → %s", (open, expected) => {
    expect(names(overdue(stateOf(open), 10))).toBe(expected);
  });
});

describe("when to look next", () => {
  test.each([
    ["", null],
    ["x1@50", 50],
    ["x1@50 x2@20", 50],
    ["s1@50 s2@20", 20],
    ["x1@50†40", 40],
    ["x1@50 x2†30", 30],
    ["x1! x2!", null],
    ["x1!†70", 70],
    ["x1@50 x2~", 0],
  ])("%s → %s", (open, expected) => {
    expect(nextLook(stateOf(open))).toBe(expected);
  });

  test("retention counts, too", () => {
    expect(nextLook(stateOf("", { pruneAt: 7 }))).toBe(7);
    expect(nextLook(stateOf("x1@5", { pruneAt: 7 }))).toBe(5);
    expect(nextLook(stateOf("x1@9", { pruneAt: 7 }))).toBe(7);
  });
});

test("a resource waits in the lane of what is in turn, and in some lane while nothing is", () => {
  const open = [operation("1-a", { lane: "red", held: true }), operation("2-b", { lane: "blue" })];
  expect(laneOf({ ...stateOf(""), open })).toBe("blue");
  expect(laneOf({ ...stateOf(""), open: open.slice(0, 1) })).toBe("red");
  expect(laneOf(stateOf(""))).toBe("");
});

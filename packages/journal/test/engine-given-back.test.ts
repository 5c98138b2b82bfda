import { expect, test } from "vitest";
import { GivenBack } from "../src/engine/given-back.js";

test("a lease that was given back while a claim was on its way outdates that claim's answer, and no later epoch", () => {
  const given = new GivenBack();
  const over = given.claimBegins();
  given.add("k", 3);
  expect([given.outdates("k", 3), given.outdates("k", 4), given.outdates("other", 3)]).toEqual([true, false, false]);
  over();
  expect([given.outdates("k", 3), given.size]).toEqual([false, 0]);
});

test("what was given back is forgotten when the claims of that moment are over, though others follow without a gap", () => {
  const given = new GivenBack();
  let over = given.claimBegins();
  let most = 0;
  for (let n = 0; n < 1_000; n++) {
    const next = given.claimBegins();
    given.add(`k${n}`, 1);
    over();
    over = next;
    most = Math.max(most, given.size);
  }
  expect(most).toBeLessThanOrEqual(2);
});

test("nothing is remembered while no claim is on its way", () => {
  const given = new GivenBack();
  given.add("k", 1);
  expect(given.size).toBe(0);
});

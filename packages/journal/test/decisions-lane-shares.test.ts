import { expect, test } from "vitest";
import { type LaneLedger, nextLedger, withoutMember } from "../src/decisions/lane-shares.js";

const memberMs = 30_000;

/** Repeatable chance. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}

const ruleOf = (limit: number) => [{ lane: "lane", paused: false, limit }];

function sharesIn({ members }: LaneLedger, now: number): number {
  return [...members.values()].reduce(
    (sum, { until, shares }) => sum + (until > now ? (shares.get("lane") ?? 0) : 0),
    0,
  );
}

test("whoever asks when, and whatever runs where, all shares together are never more than the limit", () => {
  for (let seed = 1; seed <= 50; seed++) {
    const random = chance(seed);
    const limit = Math.floor(random() * 7);
    let ledger: LaneLedger = { members: new Map() };
    let now = 1_000;
    for (let turn = 0; turn < 200; turn++) {
      now += Math.floor(random() * 5_000);
      const id = `p${Math.floor(random() * 5)}`;
      const share = ledger.members.get(id)?.shares.get("lane") ?? 0;
      const running = new Map([["lane", Math.floor(random() * (share + 1))]]);
      ledger =
        random() < 0.1
          ? withoutMember(ledger, id)
          : nextLedger(ledger, ruleOf(limit), { id, until: now + memberMs, running }, now);
      expect(sharesIn(ledger, now)).toBeLessThanOrEqual(limit);
      expect(ledger.members.get(id)?.shares.get("lane") ?? 0).toBeGreaterThanOrEqual(0);
    }
  }
});

test("once all have asked, all of the limit is shared out, and evenly", () => {
  for (const limit of [0, 1, 2, 3, 7, 100]) {
    let ledger: LaneLedger = { members: new Map() };
    const ids = ["a", "b", "c"];
    for (let round = 0; round < 4; round++) {
      for (const id of ids) {
        ledger = nextLedger(ledger, ruleOf(limit), { id, until: memberMs, running: new Map() }, 0);
      }
    }
    const shares = ids.map((id) => ledger.members.get(id)?.shares.get("lane") ?? 0);
    expect(shares.reduce((sum, share) => sum + share)).toBe(limit);
    expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
  }
});

test("a share sinks no lower than what runs in it, and those of the dead are free", () => {
  const alone = nextLedger({ members: new Map() }, ruleOf(4), { id: "a", until: 100, running: new Map() }, 0);
  expect(alone.members.get("a")?.shares.get("lane")).toBe(4);
  const both = nextLedger(alone, ruleOf(4), { id: "b", until: 200, running: new Map() }, 1);
  expect(both.members.get("b")?.shares.get("lane")).toBeUndefined();
  const sunk = nextLedger(both, ruleOf(4), { id: "a", until: 100, running: new Map([["lane", 3]]) }, 2);
  expect(sunk.members.get("a")?.shares.get("lane")).toBe(3);
  const after = nextLedger(sunk, ruleOf(4), { id: "b", until: 300, running: new Map() }, 101);
  expect([...after.members.keys()]).toEqual(["b"]);
  expect(after.members.get("b")?.shares.get("lane")).toBe(4);
});

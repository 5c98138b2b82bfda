import fc from "fast-check";
import { expect, test } from "vitest";
import { type LaneLedger, type LaneNeed, markGone, nextLedger, withoutMember } from "../src/decisions/lane-shares.js";

const memberMs = 30_000;
const ids = ["a", "b", "c", "d"] as const;

const ruleOf = (limit: number) => [{ lane: "lane", paused: false, limit }];
const nobody: LaneLedger = { members: new Map() };

interface Asked {
  readonly id: string;
  readonly limit: number;
  readonly now: number;
  readonly running?: number;
  readonly need?: LaneNeed;
}

function ask(ledger: LaneLedger, { id, limit, now, running = 0, need = "any" }: Asked): LaneLedger {
  const owner = `owner of ${id}`;
  const asking = { id, owner, until: now + memberMs, running: new Map([["lane", running]]), needOf: () => need };
  return nextLedger(ledger, ruleOf(limit), asking, now);
}

function shareOf({ members }: LaneLedger, id: string): number {
  return members.get(id)?.shares.get("lane") ?? 0;
}

function sharesIn({ members }: LaneLedger, now: number): number {
  return [...members].reduce((sum, [, { until, shares }]) => sum + (until > now ? (shares.get("lane") ?? 0) : 0), 0);
}

const need = fc.oneof(fc.constantFrom<LaneNeed>("none", "any"), fc.integer({ min: 1, max: 9 }));
const limits = fc.integer({ min: 0, max: 9 });

test("whoever asks when, whatever runs where and who needs it, all shares together are never more than the limit", () => {
  const turn = fc.record({
    id: fc.constantFrom(...ids),
    passedMs: fc.integer({ min: 0, max: 20_000 }),
    /** Of its share, so much runs. */
    part: fc.double({ min: 0, max: 1, noNaN: true }),
    need,
    leaves: fc.boolean(),
  });
  fc.assert(
    fc.property(limits, fc.array(turn, { maxLength: 60 }), (limit, turns) => {
      let [ledger, now] = [nobody, 1_000];
      for (const { id, passedMs, part, need, leaves } of turns) {
        now += passedMs;
        const before = (ledger.members.get(id)?.until ?? 0) > now ? shareOf(ledger, id) : 0;
        const running = Math.floor(part * before);
        ledger = leaves ? withoutMember(ledger, id) : ask(ledger, { id, limit, now, running, need });
        expect(sharesIn(ledger, now)).toBeLessThanOrEqual(limit);
        if (!leaves) expect(shareOf(ledger, id)).toBeGreaterThanOrEqual(running);
      }
    }),
  );
});

test("once all have asked, each has what is urgent for it, as far as there is so much, and the rest is shared equally", () => {
  fc.assert(
    fc.property(limits, fc.array(need, { minLength: 1, maxLength: ids.length }), (limit, needs) => {
      let ledger = nobody;
      // At first all are alike; then those that need nothing let go of what they have, and the others grow.
      for (let round = 0; round < 3; round++)
        for (const id of ids.slice(0, needs.length)) ledger = ask(ledger, { id, limit, now: 0 });
      for (let round = 0; round < 4; round++) {
        needs.forEach((need, index) => {
          ledger = ask(ledger, { id: ids[index] ?? "", limit, now: 0, need });
        });
      }
      const all = needs.map((need, index) => ({ need, share: shareOf(ledger, ids[index] ?? "") }));
      const wanting = all.filter(({ need }) => need !== "none");
      for (const { need, share } of all) if (need === "none") expect(share).toBe(0);
      expect(sharesIn(ledger, 0)).toBe(wanting.length === 0 ? 0 : limit);
      const urgent = wanting.map(({ need }) => (typeof need === "number" ? need : 0));
      const isEnough = urgent.reduce((sum, one) => sum + one, 0) <= limit;
      for (const [index, { share }] of wanting.entries()) {
        if (isEnough) expect(share).toBeGreaterThanOrEqual(urgent[index] ?? 0);
        else expect(share).toBeLessThanOrEqual(urgent[index] ?? 0);
        // Nobody has more than another, but for what is urgent.
        for (const other of wanting) if (share > other.share + 1) expect(share).toBeLessThanOrEqual(urgent[index] ?? 0);
      }
    }),
  );
});

test("a process for which something is urgent and that stands still stops no more places than that", () => {
  let ledger = nobody;
  for (let round = 0; round < 2; round++) for (const id of ["a", "b"]) ledger = ask(ledger, { id, limit: 4, now: 0 });
  // It runs nothing and awaits one place; the others of its share are not urgent.
  ledger = ask(ledger, { id: "a", limit: 4, now: 1, need: 1 });
  for (let now = 2; now < 20_000; now += 1_000) {
    ledger = ask(ledger, { id: "b", limit: 4, now, running: shareOf(ledger, "b") });
    expect(shareOf(ledger, "b")).toBe(2);
  }
});

test("what is urgent is not written anew at each end of an operation, nor does it stand when it is much less", () => {
  const needs = new Set<number>();
  let ledger = nobody;
  for (let urgent = 64; urgent > 0; urgent--) {
    ledger = ask(ledger, { id: "a", limit: 100, now: 0, need: urgent });
    const written = Number(ledger.members.get("a")?.needs.get("lane"));
    expect(written).toBeGreaterThanOrEqual(urgent);
    expect(written).toBeLessThanOrEqual(2 * urgent);
    needs.add(written);
  }
  expect(needs.size).toBeLessThanOrEqual(7);
});

test("it is written of those that are gone, and of no others, until they write themselves", () => {
  let ledger = nobody;
  for (const id of ["a", "b"]) ledger = ask(ledger, { id, limit: 2, now: 0 });
  const marked = markGone(ledger, new Set(["owner of a", "owner of nobody"]), 5);
  expect([...marked.members].map(([id, { goneAt }]) => [id, goneAt])).toEqual([
    ["a", 5],
    ["b", null],
  ]);
  expect(markGone(marked, new Set(["owner of a"]), 9).members.get("a")?.goneAt).toBe(5);
  const after = ask(marked, { id: "a", limit: 2, now: 10, running: 2 });
  expect(after.members.get("a")).toMatchObject({ goneAt: null, shares: ledger.members.get("a")?.shares });
});

test("the place that is left over comes to each of them in turn", () => {
  let ledger = nobody;
  const had = new Set<string>();
  for (let now = 0; now < 10 * 60_000; now += 10_000) {
    for (const id of ids) ledger = ask(ledger, { id, limit: 1, now });
    for (const id of ids) if (shareOf(ledger, id) > 0) had.add(id);
  }
  expect([...had].sort()).toEqual([...ids]);
});

test("a share sinks no lower than what runs in it, and those of the dead are free", () => {
  const alone = ask(nobody, { id: "a", limit: 4, now: 0 });
  expect(shareOf(alone, "a")).toBe(4);
  const both = ask(alone, { id: "b", limit: 4, now: 1 });
  expect(shareOf(both, "b")).toBe(0);
  const sunk = ask(both, { id: "a", limit: 4, now: 2, running: 3 });
  expect(shareOf(sunk, "a")).toBe(3);
  const after = ask(sunk, { id: "b", limit: 4, now: memberMs + 2 });
  expect([...after.members.keys()]).toEqual(["b"]);
  expect(shareOf(after, "b")).toBe(4);
});

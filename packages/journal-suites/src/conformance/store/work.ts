import assert from "node:assert/strict";
import type { WorkPlace } from "@osbert/journal/store";
import type { StoreFixture, StoreTests } from "../store-fixture.js";
import { byBytes, hostileTexts } from "./hostile-texts.js";

/** `find` by work, and `labels`: what an operator looks for. */
export const workTests: StoreTests = {
  "J10: what has work is found by lane, due time and key, in pages": async (fixture) => {
    const places = hostileTexts.flatMap((lane, index) =>
      ["b", "a"].map((key) => ({ lane: lane.slice(0, 20), dueAt: (index % 3) * 1_000, key: `${key}${index}` })),
    );
    for (const { key, lane, dueAt } of places) await fixture.create(key, { lane, dueAt });
    await fixture.create("idle", { lane: "", dueAt: 5 });
    await fixture.create("not due", { lane: "l", dueAt: null });
    const ordered = places.filter(({ lane }) => lane !== "").sort(byWork);
    assert.deepEqual(
      await inPages(fixture, null),
      ordered.map(({ key }) => key),
    );
  },

  "J10: what has work is found in one lane, in which no character is special": async (fixture) => {
    for (const [index, lane] of ["l", "L", "l ", "l%", "m"].entries())
      for (const at of [2, 1, 1]) await fixture.create(`${lane}/${at}/${index}/${Math.random()}`, { lane, dueAt: at });
    for (const lane of ["l", "L", "l ", "l%", "m", "none"]) {
      const found = await fixture.store.find({ work: { lane, after: null }, after: null, limit: 100 });
      assert.equal(found.length, lane === "none" ? 0 : 3);
      assert.deepEqual(new Set(found.map((record) => record.lane)), new Set(lane === "none" ? [] : [lane]));
      assert.deepEqual(
        await inPages(fixture, lane, 1),
        found.map(({ key }) => key),
      );
    }
  },

  "J10: what is leased has work, too": async (fixture) => {
    await fixture.createHeld("held", "runner", { lane: "l" });
    assert.deepEqual(await inPages(fixture, "l"), ["held"]);
  },
};

/** Pages of an odd size, so that they end among those that are due in the same millisecond. */
async function inPages(fixture: StoreFixture, lane: string | null, limit = 3): Promise<readonly string[]> {
  const seen: string[] = [];
  for (let after: WorkPlace | null = null; ; ) {
    const page = await fixture.store.find({ work: { lane, after }, after: null, limit });
    assert.ok(page.length <= limit);
    const last = page.at(-1);
    if (last === undefined) return seen;
    after = { lane: last.lane, dueAt: last.dueAt ?? 0, key: last.key };
    seen.push(...page.map(({ key }) => key));
  }
}

function byWork(a: WorkPlace, b: WorkPlace): number {
  return byBytes(a.lane, b.lane) || a.dueAt - b.dueAt || byBytes(a.key, b.key);
}

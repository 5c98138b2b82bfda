import assert from "node:assert/strict";
import { leaseMs, type StoreFixture, type StoreTests } from "../store-fixture.js";

/** `backlog`. */
export const backlogTests: StoreTests = {
  "backlog: counts what is due and what is due later, lane by lane in the order of bytes": async (fixture) => {
    const now = fixture.clock.now();
    for (const [key, lane, dueAt] of [
      ["a", "β", now],
      ["b", "z", now - 5],
      ["c", "z", now + 1],
      ["d", "z", now + 60_000],
    ] as const)
      await fixture.create(key, { lane, dueAt });
    assert.deepEqual(await counts(fixture), [
      ["z", 1, 2],
      ["β", 1, 0],
    ]);
  },

  "backlog: what has no due time and what is in no lane does not count": async (fixture) => {
    await fixture.create("idle", { lane: "idle" });
    await fixture.create("to be pruned", { lane: "", dueAt: fixture.clock.now() });
    await fixture.create("aside", { lane: "aside", dueAt: 0 });
    await fixture.store.setAside("aside");
    assert.deepEqual(await counts(fixture), []);
    assert.equal((await fixture.store.backlog({ limit: 10, sample: 10 })).now, fixture.clock.now());
  },

  "backlog: what someone runs is due at the end of its lease, and counted as leased": async (fixture) => {
    await fixture.createHeld("k", "runner", { lane: "z" });
    await fixture.create("other", { lane: "z", dueAt: fixture.clock.now() });
    const { leased, lanes } = await fixture.store.backlog({ limit: 10, sample: 10 });
    assert.equal(leased, 1);
    assert.deepEqual(
      lanes.map(({ due, later }) => [due, later]),
      [[1, 1]],
    );
    assert.deepEqual(
      lanes[0]?.sample.map(({ key, dueAt, lease }) => [key, dueAt, lease?.owner]),
      [
        ["other", fixture.clock.now(), undefined],
        ["k", fixture.clock.now() + leaseMs, "runner"],
      ],
    );
  },

  "J10: backlog: counts no further than its limit, and reads no more than its sample of each lane, the earliest":
    async (fixture) => {
      const now = fixture.clock.now();
      for (let number = 0; number < 5; number++) {
        await fixture.create(`due ${number}`, { lane: "x", dueAt: now - number, state: `"${number}"` });
        await fixture.create(`later ${number}`, { lane: "y", dueAt: now + 10 - number });
      }
      const { lanes } = await fixture.store.backlog({ limit: 3, sample: 2 });
      assert.deepEqual(
        lanes.map(({ lane, due, later, sample }) => [lane, due, later, sample.map(({ key }) => key)]),
        [
          ["x", 3, 0, ["due 4", "due 3"]],
          ["y", 0, 3, ["later 4", "later 3"]],
        ],
      );
      assert.equal(lanes[0]?.sample[0]?.state, '"4"');
    },
};

async function counts(fixture: StoreFixture): Promise<readonly (readonly [string, number, number])[]> {
  const { lanes } = await fixture.store.backlog({ limit: 100, sample: 0 });
  return lanes.map(({ lane, due, later }) => [lane, due, later]);
}

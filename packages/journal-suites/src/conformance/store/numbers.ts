import assert from "node:assert/strict";
import { keysOf, type StoreTests } from "../store-fixture.js";

const largest = Number.MAX_SAFE_INTEGER;

/** Numbers are kept whole, up to the largest that JavaScript counts with. */
export const numbersTests: StoreTests = {
  "J6: due times and leases may be any whole number up to 2^53 - 1": async (fixture) => {
    for (const number of [0, 1, 2 ** 31, 2 ** 32 + 1, 2 ** 42, largest - 1, largest]) {
      const key = String(number);
      const record = await fixture.create(key, { epoch: 1, dueAt: number, lease: { owner: "o", until: number } });
      assert.deepEqual([record.dueAt, record.lease?.until], [number, number]);
    }
  },

  "J6: the largest due time is a time to look again": async (fixture) => {
    await fixture.create("largest", { dueAt: largest });
    await fixture.create("due", { dueAt: 0 });
    const answer = await fixture.claim("owner", { leaseMs: largest - fixture.clock.now() });
    assert.deepEqual([keysOf(answer.claimed), answer.claimed[0]?.dueAt, answer.nextDueAt], [["due"], largest, largest]);
  },

  "J6: times are kept to the millisecond": async (fixture) => {
    fixture.clock.advance(123);
    const held = await fixture.createHeld("k", "owner");
    assert.equal(held.lease?.until, fixture.clock.now() + 30_000);
    fixture.clock.advance(7);
    await fixture.change(held);
    const [, entry] = await fixture.entries("k");
    assert.equal(entry?.at, fixture.clock.now());
  },
};

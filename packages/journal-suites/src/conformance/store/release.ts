import assert from "node:assert/strict";
import type { StoredRecord } from "@osbert/journal/store";
import { changeOf } from "../changes.js";
import type { StoreTests } from "../store-fixture.js";

/** `release`. */
export const releaseTests: StoreTests = {
  "J3: a released resource has no lease, the given due time and the next epoch": async (fixture) => {
    const later = fixture.clock.now() + 77_000;
    for (const [key, dueAt, expected] of [
      ["later", later, later],
      ["never", null, null],
      ["now", "now", fixture.clock.now()],
    ] as const) {
      const held = await fixture.createHeld(key, "runner");
      await fixture.store.release("runner", [{ ...held, dueAt }]);
      assert.deepEqual(await fixture.record(key), { ...held, epoch: held.epoch + 1, lease: null, dueAt: expected });
      await fixture.refuses(changeOf(held));
      if (dueAt === "now") assert.deepEqual(await fixture.claimedKeys("other"), [key]);
    }
  },

  "J3: what is released as due now is due on the store's clock": async (fixture) => {
    const held = await fixture.createHeld("k", "runner");
    fixture.clock.advance(4_321);
    await fixture.store.release("runner", [{ ...held, dueAt: "now" }]);
    assert.equal((await fixture.record("k")).dueAt, fixture.clock.now());
    assert.deepEqual(await fixture.claimedKeys("other"), ["k"]);
  },

  "J3: what has moved on is not released": async (fixture) => {
    const held = await fixture.createHeld("k", "runner");
    const changed = await fixture.change(held, { dueAt: fixture.clock.now() });
    await fixture.store.release("runner", [{ ...held, dueAt: null }]);
    assert.deepEqual(await fixture.record("k"), changed);
    assert.deepEqual(await fixture.claimedKeys("runner"), ["k"]);
  },

  "J3: what is not held any more is not released": async (fixture) => {
    const others = await fixture.createHeld("other's", "other");
    const again = await fixture.createHeld("again", "runner");
    const free = await fixture.create("free", { dueAt: fixture.clock.now() + 5 });
    await fixture.store.release("runner", [
      { ...others, dueAt: null },
      { ...again, epoch: again.epoch - 1, dueAt: null },
      { ...free, dueAt: null },
      { key: "never there", seq: 1, epoch: 1, dueAt: "now" },
    ]);
    assert.deepEqual(await fixture.record("other's"), others);
    assert.deepEqual(await fixture.record("again"), again);
    assert.deepEqual(await fixture.record("free"), free);
    assert.equal(await fixture.store.read("never there", []), undefined);
  },

  "J3: a lease is released once": async (fixture) => {
    const held = await fixture.createHeld("k", "runner");
    await fixture.store.release("runner", [{ ...held, dueAt: "now" }]);
    const { claimed } = await fixture.claim("runner");
    await fixture.store.release("runner", [{ ...held, dueAt: null }]);
    assert.deepEqual([await fixture.record("k")], claimed);
  },

  "J3: of a change and a release at once exactly one happens": async (fixture) => {
    await Promise.all(Array.from({ length: 30 }, (_, index) => fixture.create(`k${index}`, { dueAt: 0 })));
    const { claimed } = await fixture.claim("runner");
    const [early, late] = [claimed.slice(0, 15), claimed.slice(15)];
    const commit = (record: StoredRecord) => fixture.store.commit(changeOf(record, { dueAt: 5 }));
    const first = early.map(commit);
    const release = fixture.store.release(
      "runner",
      claimed.map((record) => ({ ...record, dueAt: null })),
    );
    const outcomes = await Promise.all([...first, ...late.map(commit)]);
    await release;
    for (const [index, before] of claimed.entries()) {
      const changed = { ...before, seq: before.seq + 1, dueAt: 5 };
      const released = { ...before, epoch: before.epoch + 1, lease: null, dueAt: null };
      const expected = outcomes[index]?.kind === "committed" ? changed : released;
      assert.deepEqual(await fixture.record(before.key), expected);
    }
  },

  "J3: hundreds of leases are released at once, each to its due time": async (fixture) => {
    const keys = Array.from({ length: 300 }, (_, index) => `k${index}`);
    await Promise.all(keys.map((key) => fixture.create(key, { dueAt: 0 })));
    const { claimed, now } = await fixture.claim("runner");
    const moved = await fixture.change(claimed[0] ?? assert.fail());
    const dueTimes = ["now", null, now + 1_000, now + 2_000] as const;
    const due = (index: number) => dueTimes[index % 4] ?? null;
    await fixture.store.release(
      "runner",
      claimed.map((record, index) => ({ ...record, dueAt: due(index) })),
    );
    for (const [index, before] of claimed.entries()) {
      const dueAt = due(index) === "now" ? now : due(index);
      const expected = index === 0 ? moved : { ...before, epoch: before.epoch + 1, lease: null, dueAt };
      assert.deepEqual(await fixture.record(before.key), expected);
    }
    await fixture.store.release("runner", []);
  },
};

import assert from "node:assert/strict";
import { changeOf } from "../changes.js";
import { eventually } from "../eventually.js";
import type { StoreTests } from "../store-fixture.js";

/** `attend`, `leave`, `reap` and `gone`. */
export const takeOverTests: StoreTests = {
  "J11: the leases of living owners stay": async (fixture) => {
    await fixture.store.attend("reaper", noLoss);
    await fixture.store.attend("runner", noLoss);
    const [own, others] = [await fixture.createHeld("own", "reaper"), await fixture.createHeld("others", "runner")];
    await fixture.create("free", { dueAt: 0 });
    assert.equal(await fixture.store.reap("reaper"), 0);
    assert.deepEqual(await fixture.record("own"), own);
    assert.deepEqual(await fixture.record("others"), others);
    assert.equal((await fixture.record("free")).epoch, 0);
  },

  "J11: the leases of an owner that left are freed under the next epoch and due now": async (fixture) => {
    await fixture.store.attend("reaper", noLoss);
    await fixture.store.attend("gone", noLoss);
    const own = await fixture.createHeld("own", "reaper");
    const held = await fixture.createHeld("k", "gone");
    const notDue = await fixture.change(await fixture.createHeld("not due", "gone"), { dueAt: null });
    const pulledIn = await fixture.change(await fixture.createHeld("pulled in", "gone"), { dueAt: 7 });
    await fixture.store.leave("gone");
    fixture.clock.advance(1_000);
    assert.equal(await fixture.store.reap("reaper"), 3);
    for (const before of [held, pulledIn, notDue]) {
      const expected = { ...before, epoch: before.epoch + 1, lease: null, dueAt: fixture.clock.now() };
      assert.deepEqual(await fixture.record(before.key), expected);
      await fixture.refuses(changeOf(before));
    }
    assert.deepEqual(await fixture.record("own"), own);
    assert.equal(await fixture.store.reap("reaper"), 0);
    assert.deepEqual([...(await fixture.claimedKeys("reaper"))].sort(), ["k", "not due", "pulled in"]);
  },

  "J11: leases of owners that nobody knows are freed: a late commit may have brought them": async (fixture) => {
    await fixture.store.attend("reaper", noLoss);
    await fixture.store.attend("gone", noLoss);
    await fixture.store.leave("gone");
    await fixture.store.reap("reaper");
    const late = await fixture.createHeld("late", "gone");
    const own = await fixture.createHeld("own", "reaper");
    assert.equal(await fixture.store.reap("reaper"), 1);
    assert.deepEqual(
      [(await fixture.record("late")).lease, (await fixture.record("late")).epoch],
      [null, late.epoch + 1],
    );
    assert.deepEqual(await fixture.record("own"), own);
  },

  "J11: hundreds of leases are freed at once": async (fixture) => {
    await fixture.store.attend("reaper", noLoss);
    await fixture.store.attend("gone", noLoss);
    await Promise.all(Array.from({ length: 300 }, (_, index) => fixture.create(`k${index}`, { dueAt: 0 })));
    await fixture.claim("gone");
    await fixture.store.leave("gone");
    assert.equal(await fixture.store.reap("reaper"), 300);
    assert.equal((await fixture.claim("reaper")).claimed.length, 300);
  },

  "J11: who is gone is told: those that left and those that nobody knows, and none that lives": async (fixture) => {
    for (const owner of ["asks", "lives", "Lives", "holds"]) await fixture.store.attend(owner, noLoss);
    await fixture.createHeld("k", "holds");
    assert.deepEqual(await fixture.store.gone(["lives", "Lives", "holds"]), []);
    assert.deepEqual(await fixture.store.gone([]), []);
    await fixture.store.leave("Lives");
    await fixture.store.leave("holds");
    const asked = ["lives", "holds", "nobody", "Lives", "ü'\\ %"];
    const told = [...(await fixture.store.gone(asked))].sort();
    assert.deepEqual(told, ["Lives", "holds", "nobody", "ü'\\ %"]);
    assert.equal((await fixture.record("k")).lease?.owner, "holds", "asking frees nothing");
    await fixture.store.reap("asks");
    assert.deepEqual(await fixture.store.gone(["holds", "lives"]), ["holds"]);
    await fixture.store.attend("Lives", noLoss);
    assert.deepEqual(await fixture.store.gone(["Lives"]), []);
  },

  "J11: an owner may come back": async (fixture) => {
    await fixture.store.attend("reaper", noLoss);
    await fixture.store.attend("runner", noLoss);
    await fixture.store.leave("runner");
    await fixture.store.attend("runner", noLoss);
    const held = await fixture.createHeld("k", "runner");
    assert.equal(await fixture.store.reap("reaper"), 0);
    assert.deepEqual(await fixture.record("k"), held);
  },

  "J11: owners that live are told apart exactly from those that do not": async (fixture) => {
    await fixture.store.attend("reaper", noLoss);
    await fixture.store.attend("runner", noLoss);
    await fixture.store.attend("Runner", noLoss);
    const lives = await fixture.createHeld("lives", "runner");
    await fixture.createHeld("is gone", "Runner");
    await fixture.store.leave("Runner");
    assert.equal(await fixture.store.reap("reaper"), 1);
    assert.deepEqual(await fixture.record("lives"), lives);
    assert.equal((await fixture.record("is gone")).lease, null);
  },

  "J11: no owner is told that it was lost while the store works": async (fixture) => {
    let losses = 0;
    const lost = () => losses++;
    await fixture.store.attend("stays", lost);
    await fixture.store.attend("leaves", lost);
    await fixture.store.reap("stays");
    await fixture.store.leave("leaves");
    await fixture.store.reap("stays");
    await fixture.close(fixture.store);
    // A call that comes a turn late is one all the same.
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(losses, 0);
  },

  "J11: an owner that never came may leave": async (fixture) => {
    await fixture.store.leave("never came");
  },

  "J11: what the owners of a closed store left behind is freed after a restart": async (fixture) => {
    await fixture.store.attend("crashed", noLoss);
    const held = await fixture.createHeld("k", "crashed");
    await fixture.restart();
    assert.deepEqual(await fixture.record("k"), held, "opening frees nothing by itself");
    await fixture.store.attend("reaper", noLoss);
    await eventually("the lease is freed", async () => (await fixture.store.reap("reaper")) > 0);
    const expected = { ...held, epoch: held.epoch + 1, lease: null, dueAt: fixture.clock.now() };
    assert.deepEqual(await fixture.record("k"), expected);
  },
};

/** For tests that look at something else. */
function noLoss(): void {}

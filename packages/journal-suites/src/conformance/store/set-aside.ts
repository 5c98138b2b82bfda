import assert from "node:assert/strict";
import { setAsideLabel } from "@osbert/journal/store";
import { changeOf } from "../changes.js";
import type { StoreTests } from "../store-fixture.js";

/** `setAside` and `restore`. */
export const setAsideTests: StoreTests = {
  "J10: a resource set aside has no due time and no lease, the next epoch and a label that says so": async (
    fixture,
  ) => {
    const held = await fixture.createHeld("k", "runner", {
      addLabels: [{ name: "n", value: "v" }],
      putParts: [{ id: "p", body: "1" }],
    });
    await fixture.store.setAside("k");
    assert.deepEqual(await fixture.record("k"), { ...held, epoch: held.epoch + 1, lease: null, dueAt: null });
    assert.deepEqual(await fixture.find({ label: setAsideLabel }), ["k"]);
    assert.deepEqual(await fixture.labelled("n", "v"), ["k"]);
    assert.deepEqual(await fixture.parts("k"), { p: "1" });
    await fixture.refuses(changeOf(held));
    fixture.clock.advance(1_000_000);
    const answer = await fixture.claim("other");
    assert.deepEqual([answer.claimed, answer.nextDueAt], [[], null]);
  },

  "J10: a resource that is due is not claimed once it was set aside": async (fixture) => {
    await fixture.create("aside", { dueAt: 0 });
    await fixture.create("good", { dueAt: 1 });
    await fixture.store.setAside("aside");
    assert.deepEqual(await fixture.claimedKeys("runner"), ["good"]);
  },

  "J10: a resource that is restored is due now and has the label no more": async (fixture) => {
    await fixture.createHeld("k", "runner", { addLabels: [{ name: "n", value: "v" }] });
    await fixture.store.setAside("k");
    const aside = await fixture.record("k");
    fixture.clock.advance(500);
    await fixture.store.restore("k");
    const restored = await fixture.record("k");
    assert.deepEqual({ ...restored, epoch: aside.epoch }, { ...aside, dueAt: fixture.clock.now() });
    assert.ok(restored.epoch >= aside.epoch);
    assert.deepEqual(await fixture.find({ label: setAsideLabel }), []);
    assert.deepEqual(await fixture.labelled("n", "v"), ["k"]);
    assert.deepEqual(await fixture.claimedKeys("runner"), ["k"]);
  },

  "J10: resources that were set aside are listed by their label, also those set aside twice": async (fixture) => {
    for (const key of ["a", "b", "c"]) await fixture.create(key);
    for (const key of ["c", "a", "a"]) await fixture.store.setAside(key);
    assert.deepEqual(await fixture.find({ label: setAsideLabel }), ["a", "c"]);
    assert.deepEqual(await fixture.find({ label: setAsideLabel, after: "a" }), ["c"]);
    await fixture.store.restore("a");
    assert.deepEqual(await fixture.find({ label: setAsideLabel }), ["c"]);
  },

  "J10: restoring what was not set aside does nothing": async (fixture) => {
    const held = await fixture.createHeld("k", "runner");
    await fixture.store.restore("k");
    assert.deepEqual(await fixture.record("k"), held);
  },

  "J10: setting aside and restoring what is not there do nothing": async (fixture) => {
    await fixture.store.setAside("k");
    await fixture.store.restore("k");
    assert.deepEqual(await fixture.find(), []);
    assert.deepEqual(await fixture.find({ label: setAsideLabel }), []);
    await fixture.create("k");
    assert.deepEqual(await fixture.find({ label: setAsideLabel }), []);
  },
};

import assert from "node:assert/strict";
import { changeOf } from "../changes.js";
import type { StoreTests } from "../store-fixture.js";

/** `remove`. */
export const removeTests: StoreTests = {
  "J2: a removed resource is gone with its parts, entries and labels": async (fixture) => {
    const record = await fixture.create("k", full);
    const other = await fixture.create("k2", full);
    assert.equal(await fixture.store.remove("k", record), true);
    assert.equal(await fixture.store.read("k", ["p"]), undefined);
    assert.deepEqual(await fixture.entries("k"), []);
    assert.deepEqual(await fixture.parts("k"), {});
    assert.deepEqual(await fixture.find(), ["k2"]);
    assert.deepEqual(await fixture.labelled("n", "v"), ["k2"]);
    assert.deepEqual(await fixture.claimedKeys("owner"), ["k2"]);
    assert.deepEqual(await fixture.parts("k2"), { p: "1" });
    assert.deepEqual(await fixture.seqs("k2"), [other.seq]);
  },

  "J2: what has moved on is not removed": async (fixture) => {
    const seen = await fixture.create("k", { ...full, epoch: 1, lease: { owner: "runner", until: 5 } });
    const record = await fixture.change(seen);
    assert.equal(await fixture.store.remove("k", seen), false);
    assert.equal(await fixture.store.remove("k", { seq: record.seq + 1, epoch: record.epoch }), false);
    assert.equal(await fixture.store.remove("k", { seq: record.seq, epoch: record.epoch - 1 }), false);
    assert.equal(await fixture.store.remove("k", { seq: record.seq, epoch: record.epoch + 1 }), false);
    assert.deepEqual(await fixture.record("k"), record);
    assert.deepEqual(await fixture.parts("k"), { p: "1" });
    assert.deepEqual(await fixture.seqs("k"), [1, 2]);
    assert.deepEqual(await fixture.labelled("n", "v"), ["k"]);
  },

  "J2: what is not there is not removed": async (fixture) => {
    assert.equal(await fixture.store.remove("k", { seq: 1, epoch: 0 }), false);
    assert.equal(await fixture.store.remove("k", { seq: 0, epoch: 0 }), false);
    const record = await fixture.create("k");
    assert.equal(await fixture.store.remove("k", record), true);
    assert.equal(await fixture.store.remove("k", record), false);
  },

  "J2: a change of a removed resource is refused": async (fixture) => {
    const record = await fixture.create("k", full);
    await fixture.store.remove("k", record);
    await fixture.refuses(changeOf(record, full));
    assert.equal(await fixture.store.read("k", []), undefined);
    assert.deepEqual(await fixture.parts("k"), {});
  },

  "J2: the key of a removed resource may be used anew": async (fixture) => {
    const old = await fixture.create("k", { ...full, epoch: 1, entries: [...full.entries, ...full.entries] });
    await fixture.store.remove("k", old);
    const record = await fixture.create("k", { state: '"new"' });
    assert.deepEqual(record, { key: "k", seq: 1, epoch: 0, state: '"new"', lane: "", dueAt: null, lease: null });
    assert.deepEqual(await fixture.seqs("k"), [1]);
    assert.deepEqual(await fixture.parts("k"), {});
    assert.deepEqual(await fixture.labelled("n", "v"), []);
    await fixture.change(record, full);
    assert.deepEqual(await fixture.seqs("k"), [1, 2]);
  },

  "J2: of a change and a removal at once exactly one happens": async (fixture) => {
    const keys = Array.from({ length: 20 }, (_, index) => `k${index}`);
    const records = await Promise.all(keys.map((key) => fixture.create(key, full)));
    const ends = await Promise.all(
      records.map((record, index) => {
        const change = () => fixture.store.commit(changeOf(record, { putParts: [{ id: "late", body: "1" }] }));
        const remove = () => fixture.store.remove(record.key, record);
        // Either of them goes first.
        return index % 2 === 0
          ? Promise.all([change(), remove()])
          : Promise.all([remove(), change()]).then(([removed, outcome]) => [outcome, removed] as const);
      }),
    );
    for (const [index, [outcome, removed]] of ends.entries()) {
      const key = `k${index}`;
      assert.equal(outcome.kind === "committed", !removed, `${key} must be either changed or removed`);
      assert.deepEqual(await fixture.parts(key), removed ? {} : { p: "1", late: "1" });
      assert.deepEqual(await fixture.seqs(key), removed ? [] : [1, 2]);
      assert.equal((await fixture.labelled("n", "v")).includes(key), !removed);
    }
  },
};

/** Something of everything. */
const full = {
  dueAt: 1,
  entries: [{ kind: "noted", operation: null, body: "{}" }],
  putParts: [{ id: "p", body: "1" }],
  addLabels: [{ name: "n", value: "v" }],
};

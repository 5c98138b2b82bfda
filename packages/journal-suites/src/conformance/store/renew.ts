import assert from "node:assert/strict";
import type { StoredRecord } from "@osbert/journal/store";
import { changeOf } from "../changes.js";
import { leaseMs, type StoreFixture, type StoreTests } from "../store-fixture.js";

/** `renew` and `heldBy`. */
export const renewTests: StoreTests = {
  "J3: an owner is told what it holds, also what has run out, in the order of keys and page by page": async (
    fixture,
  ) => {
    for (const key of ["b", "ä", "a", "c"]) await fixture.createHeld(key, "runner");
    await fixture.createHeld("other's", "other");
    await fixture.create("free");
    fixture.clock.advance(2 * leaseMs);
    const { store } = fixture;
    assert.deepEqual(await store.heldBy("runner", { after: null, limit: 3 }), ["a", "b", "c"]);
    assert.deepEqual(await store.heldBy("runner", { after: "c", limit: 3 }), ["ä"]);
    assert.deepEqual(await store.heldBy("nobody", { after: null, limit: 3 }), []);
  },

  "J3: a renewed lease runs anew from now, and so does the due time that stands for it": async (fixture) => {
    const held = await fixture.createHeld("k", "runner");
    fixture.clock.advance(10_000);
    assert.deepEqual(await fixture.store.renew("runner", [held], 50_000), ["k"]);
    const until = fixture.clock.now() + 50_000;
    assert.deepEqual(await fixture.record("k"), { ...held, lease: { owner: "runner", until }, dueAt: until });
    fixture.clock.advance(49_999);
    assert.deepEqual(await fixture.claimedKeys("other"), []);
    fixture.clock.advance(1);
    assert.deepEqual(await fixture.claimedKeys("other"), ["k"]);
  },

  "J3: only leases that the owner holds under the given epoch are renewed": async (fixture) => {
    const held = await fixture.createHeld("held", "runner");
    const others = await fixture.createHeld("other's", "other");
    const lost = await fixture.createHeld("lost", "runner", { dueAt: fixture.clock.now() - leaseMs });
    const free = await fixture.create("free");
    const taken = await fixture.change(lost, { epoch: lost.epoch + 1, lease: { owner: "other", until: 9 } });
    const again = await fixture.createHeld("again", "runner");
    const newer = await fixture.change(again, { epoch: again.epoch + 1, lease: again.lease });
    fixture.clock.advance(1_000);
    const asked = [held, others, lost, free, again, { key: "never there", epoch: 1 }];
    assert.deepEqual(await fixture.store.renew("runner", asked, leaseMs), ["held"]);
    assert.deepEqual(await fixture.record("other's"), others);
    assert.deepEqual(await fixture.record("lost"), taken);
    assert.deepEqual(await fixture.record("free"), free);
    assert.deepEqual(await fixture.record("again"), newer);
  },

  "J3: a lease is still held after the resource has moved on": async (fixture) => {
    const held = await fixture.createHeld("k", "runner");
    const changed = await fixture.change(held, { state: '"changed"' });
    fixture.clock.advance(1_000);
    assert.deepEqual(await fixture.store.renew("runner", [held], leaseMs), ["k"]);
    const until = fixture.clock.now() + leaseMs;
    assert.deepEqual(await fixture.record("k"), { ...changed, lease: { owner: "runner", until }, dueAt: until });
  },

  "J3: a change that was under way for longer than a renewal does not shorten the lease, nor the due time that stands for it":
    async (fixture) => {
      const held = await fixture.createHeld("k", "runner");
      fixture.clock.advance(10_000);
      assert.deepEqual(await fixture.store.renew("runner", [held], 50_000), ["k"]);
      const until = fixture.clock.now() + 50_000;
      const late = await fixture.change(held, { lease: held.lease, dueAt: held.dueAt });
      assert.deepEqual(await fixture.record("k"), { ...late, lease: { owner: "runner", until }, dueAt: until });
      // Work that is due earlier is so still.
      const sooner = await fixture.change(late, { lease: held.lease, dueAt: fixture.clock.now() });
      assert.deepEqual(await fixture.record("k"), { ...sooner, lease: { owner: "runner", until } });
      // It ends where it is given back, or taken under another epoch.
      const taken = await fixture.change(sooner, { epoch: held.epoch + 1, lease: held.lease, dueAt: held.dueAt });
      assert.deepEqual(await fixture.record("k"), taken);
      assert.deepEqual((await fixture.change(taken, { lease: null })).lease, (await fixture.record("k"))?.lease);
    },

  "J3: a lease that ran out and that nobody took is still held": async (fixture) => {
    const held = await fixture.createHeld("k", "runner");
    fixture.clock.advance(leaseMs + 1);
    assert.deepEqual(await fixture.store.renew("runner", [held], leaseMs), ["k"]);
    assert.deepEqual(await fixture.claimedKeys("other"), []);
  },

  "J5: a due time that was pulled in by new work stays when the lease is renewed": async (fixture) => {
    const held = await fixture.createHeld("k", "runner");
    const pulledIn = await fixture.change(held, { dueAt: fixture.clock.now() + 10 });
    assert.deepEqual(await fixture.store.renew("runner", [held], 50_000), ["k"]);
    const lease = { owner: "runner", until: fixture.clock.now() + 50_000 };
    assert.deepEqual(await fixture.record("k"), { ...pulledIn, lease });
    fixture.clock.advance(10);
    assert.deepEqual(await fixture.claimedKeys("runner"), ["k"]);
  },

  "J5: a resource without a due time has none when its lease is renewed": async (fixture) => {
    const held = await fixture.createHeld("k", "runner");
    await fixture.change(held, { dueAt: null });
    assert.deepEqual(await fixture.store.renew("runner", [held], leaseMs), ["k"]);
    assert.equal((await fixture.record("k")).dueAt, null);
  },

  "J3: a change that keeps the lease and the due time keeps them as they were renewed": async (fixture) => {
    const held = await fixture.createHeld("k", "runner");
    fixture.clock.advance(1_000);
    await fixture.store.renew("runner", [held], leaseMs);
    const renewed = await fixture.record("k");
    assert.deepEqual(await fixture.change(held), { ...renewed, seq: held.seq + 1 });
  },

  "J5: new work that comes while leases are renewed stays due": async (fixture) => {
    const held = await holdMany(fixture, 30);
    fixture.clock.advance(1_000);
    const dueAt = fixture.clock.now();
    const pullIn = (record: StoredRecord) => fixture.store.commit(changeOf(record, { dueAt }));
    const early = held.slice(0, 15).map(pullIn);
    const renewal = fixture.store.renew("runner", held, leaseMs);
    const late = held.slice(15).map(pullIn);
    for (const outcome of await Promise.all([...early, ...late])) assert.equal(outcome.kind, "committed");
    assert.equal((await renewal).length, 30);
    const lease = { owner: "runner", until: dueAt + leaseMs };
    for (const before of held) assert.deepEqual(await fixture.record(before.key), { ...before, seq: 2, dueAt, lease });
  },

  "J3: of a renewal and a claim of leases that ran out exactly one succeeds": async (fixture) => {
    const held = await holdMany(fixture, 30);
    fixture.clock.advance(leaseMs);
    const [early, renewed, late] = await Promise.all([
      fixture.claimedKeys("other", { limit: 10 }),
      fixture.store.renew("runner", held, leaseMs),
      fixture.claimedKeys("other", { limit: 10 }),
    ]);
    const claimed = [...early, ...late];
    assert.deepEqual(
      claimed.filter((key) => renewed.includes(key)),
      [],
      "no lease may be renewed that another claimed",
    );
    for (const { key, epoch } of held) {
      const record = await fixture.record(key);
      const [owner, next] = claimed.includes(key) ? ["other", epoch + 1] : ["runner", epoch];
      assert.deepEqual([record.lease?.owner, record.epoch], [owner, next]);
    }
  },

  "J3: hundreds of leases are renewed at once": async (fixture) => {
    const keys = Array.from({ length: 300 }, (_, index) => `k${index}`);
    await Promise.all(keys.map((key) => fixture.create(key, { dueAt: 0 })));
    const { claimed } = await fixture.claim("runner");
    fixture.clock.advance(5);
    const kept = await fixture.store.renew("runner", claimed, leaseMs);
    assert.deepEqual([...kept].sort(), [...keys].sort());
    const until = fixture.clock.now() + leaseMs;
    for (const record of await fixture.store.find({ after: null, limit: 1_000 })) {
      assert.deepEqual([record.lease?.until, record.dueAt], [until, until]);
    }
    assert.deepEqual(await fixture.store.renew("runner", [], leaseMs), []);
  },
};

/** So many resources that "runner" holds. */
async function holdMany(fixture: StoreFixture, count: number): Promise<readonly StoredRecord[]> {
  await Promise.all(Array.from({ length: count }, (_, index) => fixture.create(`k${index}`, { dueAt: 0 })));
  const { claimed } = await fixture.claim("runner");
  assert.equal(claimed.length, count);
  return claimed;
}

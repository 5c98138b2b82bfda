import assert from "node:assert/strict";
import type { Store, StoredRecord } from "@osbert/journal/store";
import { changeOf, newRecord } from "../changes.js";
import { eventually } from "../eventually.js";
import { claimFrom, keysOf, recordFields, type StoreFixture, type StoreTests } from "../store-fixture.js";

/** Several processes on one store's data. */
export const processesTests: StoreTests = {
  "J1: processes may open a new store at once": async (fixture) => {
    const place = await fixture.unopened();
    const stores = [place.store, await place.another(), await place.another(), await place.another()];
    await Promise.all(stores.map((store) => fixture.open(store)));
    const outcomes = await Promise.all(stores.map((store, index) => store.commit(newRecord(`k${index}`))));
    assert.ok(outcomes.every(({ kind }) => kind === "committed"));
    for (const store of stores) {
      assert.deepEqual(keysOf(await store.find({ after: null, limit: 9 })), ["k0", "k1", "k2", "k3"]);
    }
  },

  "J2: what one process committed another reads at once": async (fixture) => {
    const other = await fixture.another();
    const putParts = [{ id: "p", body: "1" }];
    const record = await fixture.create("k", { putParts, addLabels: [{ name: "n", value: "v" }] });
    const read = await other.read("k", ["p"]);
    assert.deepEqual(read && [recordFields(read.record), [...read.parts]], [record, [["p", "1"]]]);
    await other.commit(changeOf(record, { state: '"theirs"' }));
    assert.equal((await fixture.record("k")).state, '"theirs"');
    assert.deepEqual(await fixture.seqs("k"), [1, 2]);
    assert.deepEqual(keysOf(await other.find({ after: null, limit: 5 })), ["k"]);
  },

  "J2: of changes from one state by two processes exactly one is committed": async (fixture) => {
    const stores = [fixture.store, await fixture.another()];
    const record = await fixture.create("k");
    const changes = Array.from({ length: 40 }, (_, index) =>
      changeOf(record, { state: String(index), putParts: [{ id: `p${index}`, body: "1" }] }),
    );
    const outcomes = await Promise.all(changes.map((change, index) => turn(stores, index).commit(change)));
    const winners = changes.filter((_, index) => outcomes[index]?.kind === "committed");
    assert.equal(winners.length, 1);
    assert.equal((await fixture.record("k")).state, winners[0]?.state);
    assert.deepEqual(
      await fixture.partIds("k"),
      winners[0]?.putParts.map(({ id }) => id),
    );
    assert.deepEqual(await fixture.seqs("k"), [1, 2]);
  },

  "J2: of creations of one record by two processes exactly one is committed": async (fixture) => {
    const stores = [fixture.store, await fixture.another()];
    for (let round = 0; round < 10; round++) {
      const changes = Array.from({ length: 8 }, (_, index) => newRecord(`k${round}`, { state: String(index) }));
      const outcomes = await Promise.all(changes.map((change, index) => turn(stores, index).commit(change)));
      const winners = changes.filter((_, index) => outcomes[index]?.kind === "committed");
      assert.deepEqual([winners.length, (await fixture.record(`k${round}`)).state], [1, winners[0]?.state]);
    }
  },

  "J12: processes that commit at once on many resources all succeed": async (fixture) => {
    const stores = [fixture.store, await fixture.another(), await fixture.another()];
    // Each process goes over the same keys, in its own order: those that lock several rows must not lock each other out.
    const keys = Array.from({ length: 60 }, (_, index) => `k${index}`);
    await Promise.all(keys.map((key) => fixture.create(key)));
    const parts = stores.map((store, process) => {
      const own = keys.filter((_, index) => index % 3 === process);
      return Promise.all(
        (process % 2 === 0 ? own : own.reverse()).map((key) => store.commit(newRecord(`${key} of ${process}`))),
      );
    });
    assert.ok((await Promise.all(parts)).flat().every(({ kind }) => kind === "committed"));
    for (let round = 0; round < 5; round++) {
      const records = await Promise.all(keys.map((key) => fixture.record(key)));
      const races = stores.map((store, process) => {
        const changes = records.map((record) =>
          changeOf(record, { state: String(process), addLabels: [{ name: "round", value: `${round}` }] }),
        );
        return Promise.all((process % 2 === 0 ? changes : changes.reverse()).map((change) => store.commit(change)));
      });
      const committed = (await Promise.all(races)).flat().filter(({ kind }) => kind === "committed");
      assert.equal(committed.length, keys.length, "of three changes of a resource one is committed");
    }
    for (const key of keys) assert.deepEqual(await fixture.seqs(key), [1, 2, 3, 4, 5, 6]);
  },

  "J3: processes that claim at once are never given the same resource": async (fixture) => {
    const stores = [fixture.store, await fixture.another(), await fixture.another(), await fixture.another()];
    await dueNow(fixture, 200);
    const given: StoredRecord[] = [];
    for (;;) {
      const round = await Promise.all(stores.map((store, index) => claimFrom(store, `owner ${index}`, { limit: 7 })));
      const claimed = round.flatMap((answer) => answer.claimed);
      if (claimed.length === 0) break;
      given.push(...claimed);
      assert.equal(new Set(keysOf(given)).size, given.length, "no resource may be given out twice");
    }
    assert.equal(given.length, 200);
    for (const record of given) assert.deepEqual(await fixture.record(record.key), record);
  },

  "J3: processes that claim and commit at once each do what they were answered": async (fixture) => {
    const [mine, theirs] = [fixture.store, await fixture.another()];
    const records = await dueNow(fixture, 60);
    const claims = [claimFrom(theirs, "theirs", { limit: 20 }), claimFrom(mine, "mine", { limit: 20 })];
    const commits = records.map((record, index) =>
      turn([mine, theirs], index).commit(changeOf(record, { state: '"changed"' })),
    );
    claims.push(claimFrom(theirs, "theirs", { limit: 20 }));
    const outcomes = await Promise.all(commits);
    const claimed = new Map(
      (await Promise.all(claims)).flatMap((answer) => answer.claimed.map((record) => [record.key, record])),
    );
    for (const [index, { key }] of records.entries()) {
      const now = await fixture.record(key);
      assert.deepEqual([now.seq, now.epoch], [outcomes[index]?.kind === "committed" ? 2 : 1, claimed.has(key) ? 1 : 0]);
      if (claimed.has(key)) assert.deepEqual(claimed.get(key), now, "a claim must answer the record as it is");
    }
  },

  "J11: the leases of a living owner in another process stay": async (fixture) => {
    const other = await fixture.another();
    await other.attend("theirs", () => {});
    await fixture.store.attend("mine", () => {});
    await dueNow(fixture, 3);
    await claimFrom(other, "theirs");
    assert.equal(await fixture.store.reap("mine"), 0);
    assert.deepEqual(await fixture.store.gone(["theirs", "mine"]), []);
    assert.deepEqual(await fixture.claimedKeys("mine"), []);
    await other.leave("theirs");
    assert.equal(await fixture.store.reap("mine"), 3);
    assert.equal((await fixture.claimedKeys("mine")).length, 3);
  },

  "J11: the leases of a process that is gone are freed": async (fixture) => {
    const other = await fixture.another();
    await other.attend("theirs", () => {});
    await fixture.store.attend("mine", () => {});
    await dueNow(fixture, 3);
    await claimFrom(other, "theirs");
    await fixture.close(other);
    await eventually("it is told", async () => (await fixture.store.gone(["theirs"])).length === 1);
    let freed = 0;
    await eventually("the leases are freed", async () => {
      freed += await fixture.store.reap("mine");
      return freed > 0;
    });
    assert.equal(freed, 3);
    assert.equal((await fixture.claimedKeys("mine")).length, 3);
  },

  "J11: processes that reap at once free each lease once": async (fixture) => {
    const stores = [fixture.store, await fixture.another(), await fixture.another()];
    for (const [index, store] of stores.entries()) await store.attend(`owner ${index}`, () => {});
    await fixture.store.attend("gone", () => {});
    await dueNow(fixture, 60);
    await fixture.claim("gone");
    await fixture.store.leave("gone");
    const freed = await Promise.all(stores.map((store, index) => store.reap(`owner ${index}`)));
    assert.equal(
      freed.reduce((sum, count) => sum + count),
      60,
    );
    for (const record of await fixture.store.find({ after: null, limit: 100 }))
      assert.deepEqual([record.epoch, record.lease], [2, null]);
  },

  "J5: a process is woken when another commits work": async (fixture) => {
    const other = await fixture.another();
    let [woken, calledOff] = [0, 0];
    fixture.store.onWake(() => woken++);
    const callOff = fixture.store.onWake(() => calledOff++);
    callOff();
    // A single call may get lost, if it comes before the store listens: it only saves waiting for a poll.
    let commits = 0;
    await eventually("a call comes through", async () => {
      await other.commit(newRecord(`k${commits++}`, { wake: true, dueAt: 0 }));
      return woken > 0;
    });
    assert.equal(calledOff, 0, "what was called off is not called");
  },

  "J5: a process is told when another changes a value, and that it is no work": async (fixture) => {
    const other = await fixture.another();
    const told: string[] = [];
    fixture.store.onWake((what) => told.push(what));
    let commits = 0;
    await eventually("word comes through", async () => {
      await other.commit(newRecord(`k${commits++}`, { followed: true }));
      return told.includes("value");
    });
    assert.ok(!told.includes("work"));
  },
};

/** So many resources that are due. */
async function dueNow(fixture: StoreFixture, count: number): Promise<readonly StoredRecord[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => fixture.create(`k${index}`, { dueAt: index })));
}

function turn(stores: readonly Store[], index: number): Store {
  return stores[index % stores.length] ?? assert.fail();
}

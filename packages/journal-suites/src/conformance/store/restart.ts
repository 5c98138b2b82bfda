import assert from "node:assert/strict";
import { changeOf, newRecord } from "../changes.js";
import { leaseMs, type StoreFixture, type StoreTests } from "../store-fixture.js";

/** `open` and `close`: what is kept from one to the next. */
export const restartTests: StoreTests = {
  "J1: what was committed is there after a restart": async (fixture) => {
    const first = await fixture.create("k", {
      state: '{"a":1}',
      lane: "l",
      entries: [
        { kind: "one", operation: "op", body: "1" },
        { kind: "two", operation: null, body: "2" },
      ],
      putParts: [
        { id: "p", body: "1" },
        { id: "q", body: "2" },
      ],
      addLabels: [{ name: "n", value: "v" }],
    });
    await fixture.change(first, { deleteParts: ["q"], deleteEntries: [1] });
    const removed = await fixture.create("removed");
    await fixture.store.remove("removed", removed);
    await fixture.create("aside");
    await fixture.store.setAside("aside");
    const before = await everything(fixture);
    assert.deepEqual(before.keys, ["aside", "k"]);
    await fixture.restart();
    assert.deepEqual(await everything(fixture), before);
    await fixture.change(await fixture.record("k"));
    assert.deepEqual(await fixture.seqs("k"), [2, 3, 4]);
  },

  "J6: due times and leases survive a restart and run on": async (fixture) => {
    const held = await fixture.createHeld("held", "runner");
    const later = await fixture.create("later", { dueAt: fixture.clock.now() + leaseMs + 1_000 });
    await fixture.restart();
    assert.deepEqual(await fixture.record("held"), held);
    assert.deepEqual(await fixture.record("later"), later);
    const early = await fixture.claim("other");
    assert.deepEqual([early.claimed, early.nextDueAt], [[], held.dueAt]);
    fixture.clock.advance(leaseMs);
    assert.deepEqual(await fixture.claimedKeys("other", { leaseMs: 900_000 }), ["held"]);
    fixture.clock.advance(1_000);
    assert.deepEqual(await fixture.claimedKeys("other"), ["later"]);
    await fixture.refuses(changeOf(held));
  },

  "J1: closing waits for what is under way": async (fixture) => {
    const changes = Array.from({ length: 50 }, (_, index) => newRecord(`k${index}`, { state: String(index) }));
    let answered = 0;
    const commits = changes.map(async (change) => {
      const outcome = await fixture.store.commit(change);
      answered++;
      return outcome.kind;
    });
    await fixture.close(fixture.store);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(answered, 50);
    assert.deepEqual(new Set(await Promise.all(commits)), new Set(["committed"]));
    await fixture.restart();
    assert.equal((await fixture.find()).length, 50);
  },

  "J1: closing waits for all that was asked": async (fixture) => {
    const held = await fixture.createHeld("held", "runner");
    await fixture.create("due", { dueAt: 0, putParts: [{ id: "p", body: "1" }] });
    await fixture.create("bad");
    await fixture.create("old");
    const { store } = fixture;
    const asked = Promise.all([
      fixture.claim("runner"),
      store.renew("runner", [held], leaseMs),
      store.read("due", ["p"]),
      fixture.seqs("due"),
      fixture.partIds("due"),
      fixture.find({ prefix: "d" }),
      store.remove("old", { seq: 1, epoch: 0 }),
      store.setAside("bad"),
    ]);
    await Promise.all([fixture.close(store), asked]);
    const [claim, renewed, read, seqs, parts, found, removed] = await asked;
    assert.deepEqual(
      [claim.claimed.length, renewed, read?.parts.size, seqs, parts, found, removed],
      [1, ["held"], 1, [1], ["p"], ["due"], true],
    );
    await fixture.restart();
    assert.deepEqual(await fixture.find(), ["bad", "due", "held"]);
    assert.deepEqual((await fixture.record("due")).lease?.owner, "runner");
    assert.deepEqual((await fixture.record("bad")).epoch, 1);
  },

  "J12: a commit that was answered is there after a restart, whatever else is under way": async (fixture) => {
    const changes = Array.from({ length: 100 }, (_, index) => newRecord(`k${index}`));
    const commits = changes.map((change) => fixture.store.commit(change));
    await commits[0];
    await Promise.all([fixture.close(fixture.store), ...commits]);
    await fixture.restart();
    assert.equal((await fixture.find()).length, 100);
  },
};

async function everything(fixture: StoreFixture) {
  return {
    keys: await fixture.find(),
    record: await fixture.record("k"),
    aside: await fixture.record("aside"),
    entries: await fixture.entries("k"),
    parts: await fixture.parts("k"),
    labelled: await fixture.labelled("n", "v"),
    read: await fixture.store.read("removed", []),
  };
}

import assert from "node:assert/strict";
import { changeOf, newRecord } from "../changes.js";
import type { StoreFixture, StoreTests } from "../store-fixture.js";

/** `commit`: one atomic change of one resource, or nothing of it. */
export const commitTests: StoreTests = {
  "J2: a change that expects no record makes one": async (fixture) => {
    const lease = { owner: "runner", until: 5_000 };
    const change = newRecord("k", { state: '{"phase":"new"}', lane: "slow", dueAt: 4_000, lease });
    const outcome = await fixture.store.commit(change);
    assert.deepEqual(outcome, { kind: "committed", at: fixture.clock.now() });
    const expected = { key: "k", seq: 1, epoch: 0, state: '{"phase":"new"}', lane: "slow", dueAt: 4_000, lease };
    assert.deepEqual(await fixture.record("k"), expected);
  },

  "J2: a change that expects no record is refused where there is one": async (fixture) => {
    const before = await everything(fixture, await seed(fixture));
    await fixture.refuses({ ...intrusion(fixture), expected: null, epoch: 0 });
    assert.deepEqual(await everything(fixture, "k"), before);
  },

  "J2: a change that expects a record is refused where there is none": async (fixture) => {
    const expected = { seq: 1, epoch: 0 };
    await fixture.refuses({ ...intrusion(fixture), expected, epoch: 0 });
    await fixture.refuses({ ...intrusion(fixture), expected: { seq: 0, epoch: 0 }, epoch: 0 });
    assert.equal(await fixture.store.read("k", ["p", "q"]), undefined);
    assert.deepEqual(await fixture.entries("k"), []);
    assert.deepEqual(await fixture.parts("k"), {});
    assert.deepEqual(await fixture.labelled("tenant", "intruder"), []);
    assert.deepEqual(await fixture.find(), []);
  },

  "J2: a change with a stale seq changes nothing": async (fixture) => {
    const before = await everything(fixture, await seed(fixture));
    const { seq, epoch } = before.record;
    await fixture.refuses({ ...intrusion(fixture), expected: { seq: seq - 1, epoch }, epoch });
    await fixture.refuses({ ...intrusion(fixture), expected: { seq: seq + 1, epoch }, epoch });
    assert.deepEqual(await everything(fixture, "k"), before);
  },

  "J2: a change with a stale epoch changes nothing": async (fixture) => {
    const before = await everything(fixture, await seed(fixture));
    const { seq, epoch } = before.record;
    await fixture.refuses({ ...intrusion(fixture), expected: { seq, epoch: epoch - 1 }, epoch });
    await fixture.refuses({ ...intrusion(fixture), expected: { seq, epoch: epoch + 1 }, epoch: epoch + 1 });
    assert.deepEqual(await everything(fixture, "k"), before);
  },

  "J2: a change without entries leaves the number as it is and raises the epoch, so that what was decided before is refused":
    async (fixture) => {
      await seed(fixture);
      const before = await fixture.record("k");
      const entries = await fixture.entries("k");
      const quiet = changeOf(before, {
        entries: [],
        epoch: before.epoch + 1,
        state: '{"quiet":1}',
        dueAt: 77,
        lease: null,
      });
      assert.deepEqual(await fixture.store.commit(quiet), { kind: "committed", at: fixture.clock.now() });
      const after = { ...before, epoch: before.epoch + 1, state: '{"quiet":1}', dueAt: 77, lease: null };
      assert.deepEqual(await fixture.record("k"), after);
      assert.deepEqual(await fixture.entries("k"), entries);
      await fixture.refuses(quiet);
      await fixture.refuses(changeOf(before, { state: '{"late":1}' }));
      assert.deepEqual(await fixture.record("k"), after);
    },

  "J2: a change changes its own resource alone": async (fixture) => {
    const before = await everything(fixture, await seed(fixture));
    const other = await fixture.create("k2", {
      putParts: [{ id: "p", body: '"other"' }],
      addLabels: [{ name: "tenant", value: "t" }],
    });
    await fixture.change(other, {
      state: '{"other":true}',
      deleteParts: ["p", "q"],
      removeLabels: [{ name: "tenant", value: "t" }],
      deleteEntries: [1, 2, 3],
      dueAt: 9,
      lease: { owner: "else", until: 9 },
    });
    assert.deepEqual(await everything(fixture, "k"), before);
  },

  "J2: the state and the lane are replaced": async (fixture) => {
    const record = await fixture.create("k", { state: '{"a":1}', lane: "slow" });
    const changed = await fixture.change(record, { state: '{"b":2}', lane: "fast" });
    assert.deepEqual(changed, { ...record, seq: 2, state: '{"b":2}', lane: "fast" });
  },

  "J2: entries are numbered without gaps, and the last number is the record's seq": async (fixture) => {
    const three = ["a", "b", "c"].map((kind) => ({ kind, operation: null, body: "{}" }));
    const first = await fixture.create("k", { entries: three });
    assert.equal(first.seq, 3);
    const second = await fixture.change(first);
    assert.equal(second.seq, 4);
    const third = await fixture.change(second, { entries: three });
    assert.equal(third.seq, 7);
    const kinds = (await fixture.entries("k")).map(({ seq, kind }) => [seq, kind]);
    const expected = [
      [1, "a"],
      [2, "b"],
      [3, "c"],
      [4, "noted"],
      [5, "a"],
      [6, "b"],
      [7, "c"],
    ];
    assert.deepEqual(kinds, expected);
  },

  "J2: a refused change uses up no number": async (fixture) => {
    const record = await fixture.create("k");
    await fixture.change(record);
    await fixture.refuses(changeOf(record));
    await fixture.change(await fixture.record("k"));
    assert.deepEqual(await fixture.seqs("k"), [1, 2, 3]);
  },

  "J9: entries keep kind, operation, body and token, and are stamped with the store's clock": async (fixture) => {
    const start = fixture.clock.now();
    const record = await fixture.create("k", {
      token: "first",
      entries: [
        { kind: "asked", operation: "op-1", body: '{"by":"me"}' },
        { kind: "noted", operation: null, body: "null" },
      ],
    });
    fixture.clock.advance(1_234);
    await fixture.change(record, { token: "second", entries: [{ kind: "done", operation: "op-1", body: "[1]" }] });
    assert.deepEqual(await fixture.entries("k"), [
      { seq: 1, at: start, token: "first", kind: "asked", operation: "op-1", body: '{"by":"me"}' },
      { seq: 2, at: start, token: "first", kind: "noted", operation: null, body: "null" },
      { seq: 3, at: start + 1_234, token: "second", kind: "done", operation: "op-1", body: "[1]" },
    ]);
  },

  "J2: a change repeated after a lost answer is refused, and the token of its entries tells that it was committed":
    async (fixture) => {
      const record = await fixture.create("k");
      const change = changeOf(record, { token: "0123456789abcdef0123456789ABCDEF" });
      await fixture.commit(change);
      await fixture.refuses(change);
      const [entry] = await fixture.entries("k", { kind: "numbers", seqs: [record.seq + 1] });
      assert.equal(entry?.token, change.token);
      assert.deepEqual(await fixture.seqs("k"), [1, 2]);
    },

  "J2: parts are written, replaced and removed": async (fixture) => {
    const first = await fixture.create("k", { putParts: [part("a", 1), part("b", 1), part("c", 1)] });
    assert.deepEqual(await fixture.parts("k"), { a: "1", b: "1", c: "1" });
    const second = await fixture.change(first, { putParts: [part("b", 2), part("d", 2)], deleteParts: ["a"] });
    assert.deepEqual(await fixture.parts("k"), { b: "2", c: "1", d: "2" });
    await fixture.change(second, { putParts: [part("a", 3)], deleteParts: ["b", "c", "d", "never there"] });
    assert.deepEqual(await fixture.parts("k"), { a: "3" });
  },

  "J2: labels are added and removed": async (fixture) => {
    const [red, blue, size] = [label("colour", "red"), label("colour", "blue"), label("size", "red")];
    const first = await fixture.create("k", { addLabels: [red, size] });
    assert.deepEqual(await fixture.labelled("colour", "red"), ["k"]);
    assert.deepEqual(await fixture.labelled("size", "red"), ["k"]);
    assert.deepEqual(await fixture.labelled("colour", "blue"), []);
    await fixture.change(first, { addLabels: [blue], removeLabels: [red] });
    assert.deepEqual(await fixture.labelled("colour", "red"), []);
    assert.deepEqual(await fixture.labelled("colour", "blue"), ["k"]);
    assert.deepEqual(await fixture.labelled("size", "red"), ["k"]);
  },

  "J2: a label may have several values, each added and removed alone": async (fixture) => {
    const first = await fixture.create("k", { addLabels: [label("part", "a"), label("part", "b")] });
    const second = await fixture.change(first, { addLabels: [label("part", "c")] });
    for (const value of ["a", "b", "c"]) assert.deepEqual(await fixture.labelled("part", value), ["k"]);
    await fixture.change(second, { removeLabels: [label("part", "b")] });
    assert.deepEqual(await fixture.labelled("part", "a"), ["k"]);
    assert.deepEqual(await fixture.labelled("part", "b"), []);
    assert.deepEqual(await fixture.labelled("part", "c"), ["k"]);
  },

  "J2: adding a label that is there and removing one that is not change nothing": async (fixture) => {
    const first = await fixture.create("k", { addLabels: [label("colour", "red")] });
    const again = {
      addLabels: [label("colour", "red")],
      removeLabels: [label("colour", "green"), label("none", "red")],
    };
    const second = await fixture.change(first, again);
    assert.deepEqual(await fixture.labelled("colour", "red"), ["k"]);
    await fixture.change(second, { removeLabels: [label("colour", "red")] });
    assert.deepEqual(await fixture.labelled("colour", "red"), []);
  },

  "J2: a label that a change both removes and adds is there": async (fixture) => {
    const both = { addLabels: [label("colour", "red")], removeLabels: [label("colour", "red")] };
    await fixture.change(await fixture.create("k", both), both);
    assert.deepEqual(await fixture.labelled("colour", "red"), ["k"]);
  },

  "J2: old entries are removed by number, and numbers are never used again": async (fixture) => {
    const first = await fixture.create("k", { entries: entries(5) });
    const second = await fixture.change(first, { deleteEntries: [2, 4, 99] });
    assert.deepEqual(await fixture.seqs("k"), [1, 3, 5, 6]);
    const third = await fixture.change(second, { deleteEntries: [1, 3, 5, 6] });
    assert.equal(third.seq, 7);
    assert.deepEqual(await fixture.seqs("k"), [7]);
    await fixture.change(third);
    assert.deepEqual(await fixture.seqs("k"), [7, 8]);
  },

  "J5: the due time is set, kept and taken away": async (fixture) => {
    const first = await fixture.create("k", { dueAt: 1_000 });
    assert.equal(first.dueAt, 1_000);
    const kept = await fixture.change(first, { dueAt: "keep" });
    assert.equal(kept.dueAt, 1_000);
    const moved = await fixture.change(kept, { dueAt: 2_000 });
    assert.equal(moved.dueAt, 2_000);
    const none = await fixture.change(moved, { dueAt: null });
    assert.equal(none.dueAt, null);
    const keptNone = await fixture.change(none, { dueAt: "keep" });
    assert.equal(keptNone.dueAt, null);
    assert.equal((await fixture.change(keptNone, { dueAt: 3_000 })).dueAt, 3_000);
  },

  "J3: the lease is set, kept and taken away": async (fixture) => {
    const [ours, theirs] = [
      { owner: "ours", until: 1_000 },
      { owner: "theirs", until: 2_000 },
    ];
    const first = await fixture.create("k", { lease: ours });
    assert.deepEqual(first.lease, ours);
    const kept = await fixture.change(first, { lease: "keep" });
    assert.deepEqual(kept.lease, ours);
    const moved = await fixture.change(kept, { lease: theirs });
    assert.deepEqual(moved.lease, theirs);
    const none = await fixture.change(moved, { lease: null });
    assert.equal(none.lease, null);
    const keptNone = await fixture.change(none, { lease: "keep" });
    assert.equal(keptNone.lease, null);
    assert.deepEqual((await fixture.change(keptNone, { lease: ours })).lease, ours);
  },

  "J3: due time and lease are kept or replaced independently of each other": async (fixture) => {
    const lease = { owner: "ours", until: 1_000 };
    const first = await fixture.create("k", { lease, dueAt: 1_000 });
    const pulledIn = await fixture.change(first, { lease: "keep", dueAt: 10 });
    assert.deepEqual([pulledIn.lease, pulledIn.dueAt], [lease, 10]);
    const freed = await fixture.change(pulledIn, { lease: null, dueAt: "keep" });
    assert.deepEqual([freed.lease, freed.dueAt], [null, 10]);
  },

  "J2: a new record that keeps its due time and lease has neither": async (fixture) => {
    const record = await fixture.create("k", { dueAt: "keep", lease: "keep" });
    assert.deepEqual([record.dueAt, record.lease], [null, null]);
    assert.deepEqual(await fixture.claimedKeys("anyone"), []);
  },

  "J3: a change that takes the lease raises the epoch, so that a late writer is refused": async (fixture) => {
    const seen = await fixture.create("k");
    const until = fixture.clock.now() + 1_000;
    const taken = await fixture.change(seen, { epoch: 1, lease: { owner: "runner", until }, dueAt: until });
    assert.deepEqual(taken, { ...seen, seq: 2, epoch: 1, lease: { owner: "runner", until }, dueAt: until });
    await fixture.refuses(changeOf({ ...taken, epoch: 0 }));
    assert.equal((await fixture.change(taken)).epoch, 1);
  },

  "J2: a new record may be leased from its first entry on": async (fixture) => {
    const until = fixture.clock.now() + 1_000;
    const record = await fixture.create("k", { epoch: 1, lease: { owner: "runner", until }, dueAt: until });
    assert.equal(record.epoch, 1);
    assert.deepEqual(await fixture.claimedKeys("other"), []);
  },

  "J2: one change may hold hundreds of entries and parts": async (fixture) => {
    const ids = Array.from({ length: 300 }, (_, index) => `part ${String(index).padStart(3, "0")}`);
    const first = await fixture.create("k", {
      entries: entries(300),
      putParts: ids.map((id) => ({ id, body: `"${id}"` })),
    });
    assert.equal(first.seq, 300);
    assert.deepEqual(await fixture.partIds("k"), ids);
    const numbered = (await fixture.entries("k")).map(({ seq, body }) => [seq, body]);
    assert.deepEqual(
      numbered,
      entries(300).map(({ body }, index) => [index + 1, body]),
    );
    const old = Array.from({ length: 300 }, (_, index) => index + 1);
    await fixture.change(first, { deleteEntries: old, deleteParts: ids.slice(1) });
    assert.deepEqual(await fixture.seqs("k"), [301]);
    assert.deepEqual(await fixture.partIds("k"), ids.slice(0, 1));
  },

  "J2: of two changes from one state exactly one is committed": async (fixture) => {
    const record = await fixture.create("k");
    const changes = ["left", "right"].map((side) =>
      changeOf(record, { state: `"${side}"`, putParts: [part(side, 1)] }),
    );
    const outcomes = await Promise.all(changes.map((change) => fixture.store.commit(change)));
    const winners = changes.filter((_, index) => outcomes[index]?.kind === "committed");
    assert.equal(winners.length, 1);
    assert.equal((await fixture.record("k")).state, winners[0]?.state);
    assert.deepEqual(
      await fixture.partIds("k"),
      winners[0]?.putParts.map(({ id }) => id),
    );
    assert.deepEqual(await fixture.seqs("k"), [1, 2]);
  },

  "J2: of 50 changes from one state at once exactly one is committed, whole": async (fixture) => {
    const record = await fixture.create("k");
    const changes = Array.from({ length: 50 }, (_, index) =>
      changeOf(record, {
        state: String(index),
        entries: [{ kind: "tried", operation: null, body: String(index) }],
        putParts: [part("p", index), part(`p${index}`, index)],
        addLabels: [label("tried", String(index))],
      }),
    );
    const outcomes = await Promise.all(changes.map((change) => fixture.store.commit(change)));
    const winners = outcomes.flatMap(({ kind }, index) => (kind === "committed" ? [index] : []));
    assert.equal(winners.length, 1);
    const winner = winners[0] ?? -1;
    assert.equal((await fixture.record("k")).state, String(winner));
    assert.deepEqual(
      (await fixture.entries("k")).map(({ body }) => body),
      ["{}", String(winner)],
    );
    assert.deepEqual(await fixture.parts("k"), { p: String(winner), [`p${winner}`]: String(winner) });
    for (let index = 0; index < 50; index++) {
      assert.deepEqual(await fixture.labelled("tried", String(index)), index === winner ? ["k"] : []);
    }
  },

  "J2: of 50 creations of one record at once exactly one is committed": async (fixture) => {
    const changes = Array.from({ length: 50 }, (_, index) =>
      newRecord("k", { state: String(index), putParts: [part(`p${index}`, index)] }),
    );
    const outcomes = await Promise.all(changes.map((change) => fixture.store.commit(change)));
    const winners = changes.filter((_, index) => outcomes[index]?.kind === "committed");
    assert.equal(winners.length, 1);
    const record = await fixture.record("k");
    assert.deepEqual([record.state, record.seq], [winners[0]?.state, 1]);
    assert.equal((await fixture.entries("k"))[0]?.token, winners[0]?.token);
    assert.deepEqual(
      await fixture.partIds("k"),
      winners[0]?.putParts.map(({ id }) => id),
    );
  },
};

/** A resource "k" with something of everything. */
async function seed(fixture: StoreFixture): Promise<string> {
  const first = await fixture.create("k", {
    state: '{"seed":true}',
    lane: "slow",
    dueAt: 4_000,
    epoch: 1,
    lease: { owner: "early", until: 4_000 },
    entries: entries(3),
    putParts: [part("p", 1), part("q", 1)],
    addLabels: [label("tenant", "t")],
  });
  await fixture.change(first, { epoch: 2, lease: { owner: "runner", until: 5_000 } });
  return "k";
}

/** A change of "k" that would leave its mark everywhere. */
function intrusion(fixture: StoreFixture) {
  return newRecord("k", {
    state: '{"intruder":true}',
    lane: "intruder",
    dueAt: fixture.clock.now(),
    lease: { owner: "intruder", until: fixture.clock.now() },
    entries: entries(2),
    putParts: [part("p", 666), part("r", 666)],
    deleteParts: ["q"],
    addLabels: [label("tenant", "intruder")],
    removeLabels: [label("tenant", "t")],
    deleteEntries: [1, 2],
  });
}

async function everything(fixture: StoreFixture, key: string) {
  return {
    record: await fixture.record(key),
    entries: await fixture.entries(key),
    parts: await fixture.parts(key),
    ofTenant: await fixture.labelled("tenant", "t"),
    ofIntruder: await fixture.labelled("tenant", "intruder"),
  };
}

function entries(count: number) {
  return Array.from({ length: count }, (_, index) => ({ kind: "noted", operation: null, body: String(index) }));
}

function part(id: string, body: number) {
  return { id, body: String(body) };
}

function label(name: string, value: string) {
  return { name, value };
}

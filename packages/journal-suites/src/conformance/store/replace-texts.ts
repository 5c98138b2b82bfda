import assert from "node:assert/strict";
import type { StoredRecord, TextReplacement } from "@osbert/journal/store";
import { changeOf } from "../changes.js";
import type { StoreFixture, StoreTests } from "../store-fixture.js";
import { hostileTexts } from "./hostile-texts.js";

const state = (seq: number, from: string, to: string): TextReplacement => ({ place: { kind: "state", seq }, from, to });
const part = (id: string, from: string, to: string): TextReplacement => ({ place: { kind: "part", id }, from, to });
const entry = (seq: number, from: string, to: string): TextReplacement => ({ place: { kind: "entry", seq }, from, to });

/** `replaceTexts`: texts change in place, and nothing else does. */
export const replaceTextsTests: StoreTests = {
  "J2: texts are replaced in place, and nothing else changes": async (fixture) => {
    const held = await createRich(fixture, "k");
    await createRich(fixture, "other");
    const before = await everything(fixture, "k");
    const other = await everything(fixture, "other");
    fixture.clock.advance(1_234);
    const replaced = await fixture.store.replaceTexts("k", [
      state(3, '"state"', '"new state"'),
      part("p", '"part p"', '"new part p"'),
      entry(2, '"entry 2"', '"new entry 2"'),
    ]);
    assert.equal(replaced, 3);
    assert.deepEqual(await everything(fixture, "k"), {
      ...before,
      record: { ...held, state: '"new state"' },
      parts: { p: '"new part p"', q: '"part q"' },
      entries: before.entries.map((old) => (old.seq === 2 ? { ...old, body: '"new entry 2"' } : old)),
    });
    assert.deepEqual(await everything(fixture, "other"), other);
    assert.deepEqual(await fixture.claimedKeys("someone else"), [], "its lease and due time stand");
    await fixture.change(await fixture.record("k"));
    assert.equal((await fixture.record("k")).seq, held.seq + 1, "a commit on what was read before still fits");
  },

  "J2: a text that is another one by now stays, whatever becomes of those beside it": async (fixture) => {
    await createRich(fixture, "k");
    const before = await everything(fixture, "k");
    const replaced = await fixture.store.replaceTexts("k", [
      state(3, "another state", '"x"'),
      part("p", '"part p" ', '"x"'),
      part("q", '"part q"', '"new part q"'),
      entry(1, '"ENTRY 1"', '"x"'),
      entry(2, "", '"x"'),
    ]);
    assert.equal(replaced, 1);
    const parts = { ...before.parts, q: '"new part q"' };
    assert.deepEqual(await everything(fixture, "k"), { ...before, parts });
  },

  "J2: a state is replaced only at the seq that it was read at, even if its text is the same since": async (
    fixture,
  ) => {
    const first = await fixture.create("k", { state: '"same"' });
    const second = await fixture.change(first);
    assert.equal(await fixture.store.replaceTexts("k", [state(first.seq, '"same"', '"x"')]), 0);
    assert.deepEqual(await fixture.record("k"), second);
    assert.equal(await fixture.store.replaceTexts("k", [state(second.seq, '"same"', '"x"')]), 1);
    assert.deepEqual(await fixture.record("k"), { ...second, state: '"x"' });
  },

  "J2: texts of what is not there are not replaced, and nothing comes to be": async (fixture) => {
    assert.equal(await fixture.store.replaceTexts("k", [state(1, "", "x"), part("p", "", "x"), entry(1, "", "x")]), 0);
    assert.deepEqual(await fixture.find(), []);
    await createRich(fixture, "k");
    const before = await everything(fixture, "k");
    assert.equal(await fixture.store.replaceTexts("k", [part("r", "", "x"), entry(99, "", "x")]), 0);
    assert.equal(await fixture.store.replaceTexts("k", []), 0);
    assert.deepEqual(await everything(fixture, "k"), before);
  },

  "J2: texts of any content are replaced by texts of any content": async (fixture) => {
    const first: string = "";
    const record = await fixture.create("k", {
      state: first,
      putParts: [{ id: "p", body: first }],
      entries: [{ kind: "noted", operation: null, body: first }],
    });
    let from: string = first;
    for (const to of [...hostileTexts, first]) {
      const replacements = [state(1, from, to), part("p", from, to), entry(1, from, to)];
      assert.equal(await fixture.store.replaceTexts("k", replacements), 3, JSON.stringify([from, to]));
      const read = await fixture.store.read("k", ["p"]);
      const [noted] = await fixture.entries("k");
      assert.deepEqual([read?.record.state, read?.parts.get("p"), noted?.body], [to, to, to]);
      from = to;
    }
    assert.deepEqual(await fixture.record("k"), record);
  },

  "J2: many texts of a resource are replaced at once, large ones too": async (fixture) => {
    const large = "x".repeat(1_000_000);
    const ids = Array.from({ length: 60 }, (_, index) => `p${index}`);
    await fixture.create("k", {
      state: large,
      putParts: ids.map((id) => ({ id, body: `of ${id}` })),
      entries: ids.map((id) => ({ kind: "noted", operation: null, body: `of ${id}` })),
    });
    const replacements = [
      state(60, large, `${large}y`),
      ...ids.map((id) => part(id, `of ${id}`, `new ${id}`)),
      ...ids.map((id, index) => entry(index + 1, `of ${id}`, `new ${id}`)),
    ];
    assert.equal(await fixture.store.replaceTexts("k", replacements), 121);
    assert.ok((await fixture.record("k")).state === `${large}y`);
    assert.deepEqual(await fixture.parts("k"), Object.fromEntries(ids.map((id) => [id, `new ${id}`])));
    assert.deepEqual(
      (await fixture.entries("k")).map(({ body }) => body),
      ids.map((id) => `new ${id}`),
    );
  },

  "J2: a commit and a replacement at once: the commit is made, and what it wrote stays": async (fixture) => {
    const keys = Array.from({ length: 40 }, (_, index) => `k${index}`);
    for (let round = 0; round < 3; round++) {
      const records = await Promise.all(
        keys.map((key) =>
          round === 0 ? fixture.create(key, { state: '"0"', putParts: body("0") }) : fixture.record(key),
        ),
      );
      const to = JSON.stringify(String(round + 1));
      const work = records.map(async (record) => {
        const replacing = () => fixture.store.replaceTexts(record.key, replacementsOf(record, `${record.state} `));
        const [first, outcome, second] = await Promise.all([
          replacing(),
          fixture.store.commit(changeOf(record, { state: to, putParts: [{ id: "p", body: to }] })),
          replacing(),
        ]);
        assert.deepEqual([outcome.kind, first <= 2, second <= 2], ["committed", true, true]);
      });
      await Promise.all(work);
      for (const key of keys) {
        const read = await fixture.store.read(key, ["p"]);
        assert.deepEqual([read?.record.seq, read?.record.state, read?.parts.get("p")], [round + 2, to, to]);
      }
    }
  },

  "J1: replaced texts are there after a restart": async (fixture) => {
    await createRich(fixture, "k");
    await fixture.store.replaceTexts("k", [state(3, '"state"', '"new"'), part("q", '"part q"', '"new"')]);
    const before = await everything(fixture, "k");
    await fixture.restart();
    assert.deepEqual(await everything(fixture, "k"), before);
  },
};

/** Replacements while other processes commit. */
export const replaceTextsOfOthersTests: StoreTests = {
  "J2: texts are replaced in one process while another commits, and no commit is lost": async (fixture) => {
    const other = await fixture.another();
    const keys = Array.from({ length: 20 }, (_, index) => `k${index}`);
    await Promise.all(keys.map((key) => fixture.create(key, { state: '"0"', putParts: body("0") })));
    let over = false;
    const committing = keys.map(async (key) => {
      for (let count = 1; count <= 20; count++) {
        const record = (await other.read(key, []))?.record ?? assert.fail();
        const text = JSON.stringify(String(count));
        const outcome = await other.commit(changeOf(record, { state: text, putParts: [{ id: "p", body: text }] }));
        assert.equal(outcome.kind, "committed");
      }
    });
    const replacing = async () => {
      while (!over) {
        for (const key of keys) {
          const record = await fixture.record(key);
          await fixture.store.replaceTexts(key, replacementsOf(record, `${record.state.trimEnd()} `));
        }
      }
    };
    const replaced = replacing();
    await Promise.all(committing).finally(() => {
      over = true;
    });
    await replaced;
    for (const key of keys) {
      const read = await fixture.store.read(key, ["p"]);
      assert.deepEqual(
        [read?.record.seq, read?.record.state.trimEnd(), read?.parts.get("p")?.trimEnd()],
        [21, '"20"', '"20"'],
      );
    }
  },
};

function body(text: string) {
  return [{ id: "p", body: JSON.stringify(text) }];
}

/** Of a record whose part says the same as its state. */
function replacementsOf(record: StoredRecord, to: string): readonly TextReplacement[] {
  return [state(record.seq, record.state, to), part("p", record.state, to)];
}

/** A resource with everything that a resource can have, held by a runner. */
function createRich(fixture: StoreFixture, key: string): Promise<StoredRecord> {
  return fixture.createHeld(key, "runner", {
    state: '"state"',
    lane: "l",
    entries: [
      { kind: "one", operation: "op", body: '"entry 1"' },
      { kind: "two", operation: null, body: '"entry 2"' },
      { kind: "three", operation: null, body: '"entry 3"' },
    ],
    putParts: [
      { id: "p", body: '"part p"' },
      { id: "q", body: '"part q"' },
    ],
    addLabels: [{ name: "of", value: key }],
  });
}

async function everything(fixture: StoreFixture, key: string) {
  return {
    record: await fixture.record(key),
    entries: await fixture.entries(key),
    parts: await fixture.parts(key),
    labelled: await fixture.labelled("of", key),
  };
}

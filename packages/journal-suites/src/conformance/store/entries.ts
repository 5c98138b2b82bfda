import assert from "node:assert/strict";
import type { StoreTests } from "../store-fixture.js";

/** `entries`. */
export const entriesTests: StoreTests = {
  "J10: entries are read by their numbers, in order": async (fixture) => {
    await fixture.create("k", { entries: numbered(10) });
    const numbers = (...seqs: number[]) => fixture.seqs("k", { kind: "numbers", seqs });
    assert.deepEqual(await numbers(7, 2, 10), [2, 7, 10]);
    assert.deepEqual(await numbers(1), [1]);
    assert.deepEqual(await numbers(0, 11, 3, 99), [3]);
    assert.deepEqual(await numbers(99), []);
    assert.deepEqual(await numbers(), []);
    const many = Array.from({ length: 3_000 }, (_, index) => index + 8);
    assert.deepEqual(await numbers(...many), [8, 9, 10]);
    const [fourth] = await fixture.entries("k", { kind: "numbers", seqs: [4] });
    assert.equal(fourth?.body, "4");
  },

  "J10: entries are read after a number, oldest first, no more than the limit": async (fixture) => {
    await fixture.create("k", { entries: numbered(12) });
    const after = (seq: number, limit: number) => fixture.seqs("k", { kind: "after", after: seq, limit });
    assert.deepEqual(await after(0, 3), [1, 2, 3]);
    assert.deepEqual(await after(3, 3), [4, 5, 6]);
    assert.deepEqual(await after(9, 100), [10, 11, 12]);
    assert.deepEqual(await after(12, 100), []);
  },

  "J10: entries are read before a number, newest first, no more than the limit": async (fixture) => {
    await fixture.create("k", { entries: numbered(12) });
    const before = (seq: number, limit: number) => fixture.seqs("k", { kind: "before", before: seq, limit });
    assert.deepEqual(await before(13, 3), [12, 11, 10]);
    assert.deepEqual(await before(10, 3), [9, 8, 7]);
    assert.deepEqual(await before(4, 100), [3, 2, 1]);
    assert.deepEqual(await before(1, 100), []);
    assert.deepEqual(await before(Number.MAX_SAFE_INTEGER, 1), [12]);
  },

  "J10: ranges of entries go over removed ones": async (fixture) => {
    const record = await fixture.create("k", { entries: numbered(6) });
    await fixture.change(record, { deleteEntries: [1, 2, 4] });
    assert.deepEqual(await fixture.seqs("k", { kind: "after", after: 0, limit: 2 }), [3, 5]);
    assert.deepEqual(await fixture.seqs("k", { kind: "before", before: 6, limit: 2 }), [5, 3]);
    assert.deepEqual(await fixture.seqs("k", { kind: "numbers", seqs: [1, 3, 4, 7] }), [3, 7]);
  },

  "J10: the entry that tells the end of an operation is found by the operation": async (fixture) => {
    const ended = (operation: string | null, body: string) => ({ kind: "settled", operation, body });
    const record = await fixture.create("k", {
      entries: [
        { kind: "accepted", operation: "1-a", body: "1" },
        { kind: "accepted", operation: "2-a", body: "2" },
        { kind: "accepted", operation: "3-a", body: "3" },
        ended("2-a", "the second"),
        ended("1-a", "the first"),
        ended(null, "of none"),
      ],
    });
    await fixture.create("k2", { entries: [ended("1-a", "elsewhere"), ended("3-a", "elsewhere")] });
    const bodies = async (operation: string) =>
      (await fixture.entries("k", { kind: "settled", operation })).map(({ seq, body }) => [seq, body]);
    assert.deepEqual(await bodies("1-a"), [[5, "the first"]]);
    assert.deepEqual(await bodies("2-a"), [[4, "the second"]]);
    for (const operation of ["3-a", "4-a", "1-", "1-A", ""]) assert.deepEqual(await bodies(operation), []);
    await fixture.change(record, { deleteEntries: [1, 4, 5] });
    assert.deepEqual([await bodies("1-a"), await bodies("2-a")], [[], []]);
    assert.deepEqual(await fixture.entries("never there", { kind: "settled", operation: "1-a" }), []);
  },

  "J10: entries are those of one resource": async (fixture) => {
    await fixture.create("k", { entries: numbered(2) });
    await fixture.create("k2", { entries: [{ kind: "other", operation: null, body: "9" }] });
    for (const range of [
      { kind: "numbers", seqs: [1, 2] },
      { kind: "after", after: 0, limit: 10 },
      { kind: "before", before: 10, limit: 10 },
    ] as const) {
      assert.deepEqual(
        (await fixture.entries("k2", range)).map(({ body }) => body),
        ["9"],
      );
      assert.deepEqual(await fixture.entries("never there", range), []);
    }
  },
};

/** Entries whose body is their number. */
function numbered(count: number) {
  return Array.from({ length: count }, (_, index) => ({ kind: "noted", operation: null, body: String(index + 1) }));
}

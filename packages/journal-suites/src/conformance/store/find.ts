import assert from "node:assert/strict";
import type { Query } from "@osbert/journal/store";
import { recordFields, type StoreFixture, type StoreTests } from "../store-fixture.js";
import { byBytes, hostileTexts } from "./hostile-texts.js";

/** `find`. */
export const findTests: StoreTests = {
  "J10: an empty store finds nothing": async (fixture) => {
    assert.deepEqual(await fixture.find(), []);
    assert.deepEqual(await fixture.find({ prefix: "a" }), []);
    assert.deepEqual(await fixture.labelled("a", "b"), []);
  },

  "J10: what is found is the record as it is read": async (fixture) => {
    await fixture.create("free", { state: '{"a":1}', lane: "l", addLabels: [{ name: "n", value: "v" }] });
    await fixture.createHeld("held", "owner", { addLabels: [{ name: "n", value: "v" }] });
    const expected = [await fixture.record("free"), await fixture.record("held")];
    for (const query of [{}, { label: { name: "n", value: "v" } }]) {
      const found = await fixture.store.find({ ...query, after: null, limit: 10 });
      assert.deepEqual(found.map(recordFields), expected);
    }
  },

  "J10: records are found by key in byte order": async (fixture) => {
    const keys = ["😀", "\uff5e", "b", "B", "a", "é", "z", "a b", "ab", "a-b", "10", "9"];
    for (const key of keys) await fixture.create(key);
    const expected = ["10", "9", "B", "a", "a b", "a-b", "ab", "b", "z", "é", "\uff5e", "😀"];
    assert.deepEqual(await fixture.find(), expected);
  },

  "J10: all records are found in pages": async (fixture) => {
    await createAll(fixture, hostileTexts);
    assert.deepEqual(await inPages(fixture, {}), [...hostileTexts].sort(byBytes));
  },

  "J10: records are found by the start of their key, in which no character is special": async (fixture) => {
    const keys = [...new Set(hostileTexts.flatMap((text) => [text, `${text}1`, `x${text}`]))];
    await createAll(fixture, keys);
    for (const prefix of hostileTexts) {
      const expected = keys.filter((key) => key.startsWith(prefix)).sort(byBytes);
      assert.deepEqual(await inPages(fixture, { prefix }), expected, `keys that start with ${JSON.stringify(prefix)}`);
    }
  },

  "J10: a page may go on within a prefix": async (fixture) => {
    await createAll(fixture, ["a/1", "b/1", "b/2", "b/3", "c/1"]);
    assert.deepEqual(await fixture.find({ prefix: "b/", limit: 2 }), ["b/1", "b/2"]);
    assert.deepEqual(await fixture.find({ prefix: "b/", after: "b/2", limit: 2 }), ["b/3"]);
    assert.deepEqual(await fixture.find({ prefix: "b/", after: "a/1" }), ["b/1", "b/2", "b/3"]);
    assert.deepEqual(await fixture.find({ prefix: "b/", after: "b/3" }), []);
    assert.deepEqual(await fixture.find({ prefix: "b/", after: "c" }), []);
    assert.deepEqual(await fixture.find({ prefix: "b/2" }), ["b/2"]);
  },

  "J10: a cursor need not be the key of a record": async (fixture) => {
    await createAll(fixture, ["a", "c", "e"]);
    assert.deepEqual(await fixture.find({ after: "b" }), ["c", "e"]);
    assert.deepEqual(await fixture.find({ after: "" }), ["a", "c", "e"]);
    assert.deepEqual(await fixture.find({ after: "f" }), []);
  },

  "J10: records with a label are found by key in byte order, in pages": async (fixture) => {
    const label = { name: "tenant", value: "t" };
    for (const key of hostileTexts) await fixture.create(key, { addLabels: [label, { name: "key", value: key }] });
    await fixture.create("no label");
    await fixture.create("another tenant", { addLabels: [{ name: "tenant", value: "u" }] });
    await fixture.create("another name", { addLabels: [{ name: "owner", value: "t" }] });
    assert.deepEqual(await inPages(fixture, { label }), [...hostileTexts].sort(byBytes));
    assert.deepEqual(await fixture.labelled("tenant", "u"), ["another tenant"]);
  },

  "J10: name and value of a label are compared exactly": async (fixture) => {
    for (const text of hostileTexts) {
      await fixture.create(`name ${text}`, { addLabels: [{ name: text, value: "same" }] });
      await fixture.create(`value ${text}`, { addLabels: [{ name: "same", value: text }] });
    }
    for (const text of hostileTexts) {
      assert.deepEqual(await fixture.labelled(text, "same"), [`name ${text}`]);
      assert.deepEqual(await fixture.labelled("same", text), [`value ${text}`]);
    }
  },

  "J10: a label and a prefix together find what has both": async (fixture) => {
    const labelled = { addLabels: [{ name: "n", value: "v" }] };
    for (const key of ["a/1", "b/1", "b/3"]) await fixture.create(key, labelled);
    await fixture.create("b/2");
    const label = { name: "n", value: "v" };
    assert.deepEqual(await fixture.find({ label, prefix: "b/" }), ["b/1", "b/3"]);
    assert.deepEqual(await fixture.find({ label, prefix: "b/", after: "b/1" }), ["b/3"]);
  },

  "J10: a label may have an empty value": async (fixture) => {
    await fixture.create("k", { addLabels: [{ name: "flag", value: "" }] });
    await fixture.create("other", { addLabels: [{ name: "flag", value: " " }] });
    assert.deepEqual(await fixture.labelled("flag", ""), ["k"]);
  },
};

async function createAll(fixture: StoreFixture, keys: readonly string[]): Promise<void> {
  await Promise.all(keys.map((key) => fixture.create(key)));
}

async function inPages(fixture: StoreFixture, query: Partial<Query>): Promise<readonly string[]> {
  const seen: string[] = [];
  for (;;) {
    const page = await fixture.find({ ...query, after: seen.at(-1) ?? null, limit: 9 });
    assert.ok(page.length <= 9);
    if (page.length === 0) return seen;
    seen.push(...page);
    assert.equal(new Set(seen).size, seen.length, "no record may be found twice");
  }
}

import { describe, expect, test } from "vitest";
import { limits } from "../src/limits.js";
import { packNumbers, packOptional, packTexts } from "../src/stores/postgres/columns.js";
import { endOfPrefix } from "../src/stores/postgres/lists.js";
import { change, PostgresPlace, postgresUrl } from "./postgres-support.js";

describe("columns of texts", () => {
  test("are joined with a separator that none of them holds", () => {
    expect(packTexts([["a", "b"], [], ["", ""]])).toEqual({ separator: "\u001f", packed: ["a\u001fb", "", "\u001f"] });
    const hostile = packTexts([["a\u001fb", "c"], ["d"]]);
    expect(hostile.separator.length).toBeGreaterThan(30);
    expect(hostile.packed).toEqual([`a\u001fb${hostile.separator}c`, "d"]);
  });

  test("of numbers are PostgreSQL's arrays", () => {
    expect(packNumbers([])).toBe("{}");
    expect(packNumbers([0, null, Number.MAX_SAFE_INTEGER])).toBe("{0,NULL,9007199254740991}");
    expect([null, "", "a"].map(packOptional)).toEqual(["", "=", "=a"]);
  });
});

describe("the end of a prefix", () => {
  test.each([
    ["a", "b"],
    ["ab", "ac"],
    ["a\u{10ffff}", "b"],
    ["a\ud7ff", "a\ue000"],
    ["😀", "😁"],
    ["\uffff", "\u{10000}"],
  ])("of %j is %j", (prefix, end) => expect(endOfPrefix(prefix)).toBe(end));

  test("of none is after every name", () => {
    const largest = Buffer.from("\u{10ffff}".repeat(limits.keyBytes / 4));
    for (const prefix of ["", "\u{10ffff}"]) {
      expect(Buffer.compare(Buffer.from(endOfPrefix(prefix)), largest)).toBe(1);
    }
  });
});

describe.skipIf(postgresUrl === null)("texts in PostgreSQL", () => {
  test.each([
    ["with the separator in them", "a\u001fb", "\u001f"],
    ["that are empty, in a batch of one", "key", ""],
  ])("%s are kept exactly", (_, key, value) =>
    PostgresPlace.use(async (place) => {
      const store = await place.store();
      const entries = [{ kind: value, operation: value, body: value }];
      const lease = { owner: value, until: 5 };
      const details = {
        state: value,
        lane: value,
        token: value,
        lease,
        entries,
        putParts: [{ id: value, body: value }],
      };
      await store.commit(change(key, null, { ...details, addLabels: [{ name: value, value }] }));
      const found = await store.read(key, [value]);
      expect(found?.record).toMatchObject({ key, state: value, lane: value, lease });
      expect([...(found?.parts ?? [])]).toEqual([[value, value]]);
      const [entry] = await store.entries(key, { kind: "numbers", seqs: [1] });
      expect(entry).toMatchObject({ kind: value, operation: value, body: value, token: value });
      expect(
        (await store.find({ label: { name: value, value }, after: null, limit: 9 })).map((each) => each.key),
      ).toEqual([key]);
      expect(await store.renew(value, [{ key, epoch: 0 }], 1)).toEqual([key]);
      const record = (await store.read(key, []))?.record ?? null;
      await store.commit(
        change(key, record, {
          deleteParts: [value],
          removeLabels: [{ name: value, value }],
          lane: value,
          dueAt: 0,
          lease: null,
        }),
      );
      expect(await store.parts(key, { prefix: "", after: null, limit: 9 })).toEqual([]);
      expect(await store.find({ label: { name: value, value }, after: null, limit: 9 })).toEqual([]);
      const request = { owner: value, leaseMs: 1, limit: 1, laneRoom: 0, rooms: new Map([[value, 1]]) };
      expect((await store.claim(request)).claimed.map((each) => each.key)).toEqual([key]);
    }),
  );

  test("a label that a change removes and adds is there; a part that it writes twice is as written last", () =>
    PostgresPlace.use(async (place) => {
      const store = await place.store();
      const label = { name: "n", value: "v" };
      for (const from of [null, 1]) {
        const record = from === null ? null : ((await store.read("k", []))?.record ?? null);
        const putParts = [
          { id: "p", body: "1" },
          { id: "p", body: "2" },
        ];
        await store.commit(change("k", record, { addLabels: [label, label], removeLabels: [label], putParts }));
        expect(await store.find({ label, after: null, limit: 9 })).toHaveLength(1);
        expect((await store.read("k", ["p"]))?.parts.get("p")).toBe("2");
      }
    }));
});

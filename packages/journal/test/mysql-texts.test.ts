import { changeOf, newRecord } from "@osbert/journal-suites/conformance";
import { describe, expect, test } from "vitest";
import { MysqlPlace, mysqlUrl } from "./mysql-fixture.js";

/** Alike to a server that folds case, accents or trailing spaces, or that takes some for patterns or escapes. */
const alike = [
  "key",
  "key ",
  "key  ",
  "Key",
  "KEY",
  "kéy",
  "key\t",
  "key\0",
  "k%y",
  "k_y",
  "k\\%y",
  "k'y",
  "ké\u0301y",
];

describe.skipIf(mysqlUrl === null)("mysql: texts", () => {
  test("trailing spaces, letter case and accents make other keys, parts, labels, lanes and owners", () =>
    MysqlPlace.use(async (place) => {
      const store = await place.opened();
      for (const text of alike) {
        const outcome = await store.commit(
          newRecord(text, {
            state: JSON.stringify(text),
            lane: text,
            dueAt: 0,
            putParts: alike.map((id) => ({ id, body: id })),
            addLabels: [{ name: text, value: text }],
          }),
        );
        expect(outcome.kind).toBe("committed");
      }
      for (const text of alike) {
        const read = await store.read(text, [text]);
        expect([read?.record.key, read?.record.state, [...(read?.parts ?? [])]]).toEqual([
          text,
          JSON.stringify(text),
          [[text, text]],
        ]);
        const label = { name: text, value: text };
        expect((await store.find({ label, after: null, limit: 9 })).map(({ key }) => key)).toEqual([text]);
        const rooms = new Map([[text, 1]]);
        const { claimed } = await store.claim({ owner: text, leaseMs: 1_000, limit: 9, laneRoom: 0, rooms });
        expect(claimed.map(({ key, lease }) => [key, lease?.owner])).toEqual([[text, text]]);
        const others = alike.filter((other) => other !== text);
        for (const other of others) expect(await store.renew(other, [{ key: text, epoch: 1 }], 1_000)).toEqual([]);
      }
    }));

  test("a prefix is taken letter for letter", () =>
    MysqlPlace.use(async (place) => {
      const store = await place.opened();
      const keys = [
        "a",
        "a%",
        "a%b",
        "a_",
        "a_b",
        "ab",
        "a\\",
        "a\\%",
        "a ",
        "A",
        "á",
        "a\u{10ffff}",
        "a\u{10ffff}b",
        "b",
      ];
      await Promise.all(keys.map((key) => store.commit(newRecord(key))));
      for (const prefix of [...keys, ""]) {
        const found = (await store.find({ prefix, after: null, limit: 100 })).map(({ key }) => key);
        expect([...found].sort()).toEqual(keys.filter((key) => key.startsWith(prefix)).sort());
      }
    }));

  test("texts that do not fit into the server's largest packet are refused as too large, and others go on", () =>
    MysqlPlace.use(async (place) => {
      const [row] = await place.rows("select @@max_allowed_packet as bytes");
      const store = await place.opened();
      const huge = "x".repeat(Number(row?.bytes));
      const [refused, kept] = await Promise.allSettled([
        store.commit(newRecord("huge", { entries: [{ kind: "noted", operation: null, body: huge }] })),
        store.commit(newRecord("small")),
      ]);
      expect(refused).toMatchObject({ status: "rejected", reason: { name: "JournalError", code: "too-large" } });
      expect(kept).toMatchObject({ status: "fulfilled", value: { kind: "committed" } });
      expect(await store.read("huge", [])).toBeUndefined();
    }));

  test("a change that the server finds fault with does not take down those that came with it", () =>
    MysqlPlace.use(async (place) => {
      const store = await place.opened();
      const outcomes = await Promise.allSettled([
        store.commit(newRecord("good")),
        store.commit(newRecord("k".repeat(600))),
        store.commit(newRecord("also good")),
      ]);
      expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
      expect(outcomes[1]).toMatchObject({ reason: { name: "JournalError", code: "too-large" } });
      expect((await store.find({ after: null, limit: 9 })).map(({ key }) => key)).toEqual(["also good", "good"]);
    }));

  test("a batch that is larger than the server's largest packet is spread over statements", () =>
    MysqlPlace.use(async (place) => {
      const store = await place.opened();
      const body = "é".repeat(500_000);
      const keys = Array.from({ length: 30 }, (_, index) => `k${index}`);
      await Promise.all(keys.map((key) => store.commit(newRecord(key, { state: body }))));
      for (const key of keys) {
        const found = await store.read(key, []);
        expect(found?.record.state === body).toBe(true);
        const changed = found && (await store.commit(changeOf(found.record, { putParts: [{ id: "p", body }] })));
        expect(changed?.kind).toBe("committed");
      }
    }));
});

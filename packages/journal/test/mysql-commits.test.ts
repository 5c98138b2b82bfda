import { changeOf, newRecord } from "@osbert/journal-suites/conformance";
import { describe, expect, test } from "vitest";
import type { StoredRecord } from "../src/store.js";
import { decideCommit } from "../src/stores/mysql/decide-commit.js";
import { sharesOf } from "../src/stores/mysql/lane-shares.js";
import { MysqlPlace, mysqlUrl } from "./mysql-fixture.js";

const record: StoredRecord = {
  key: "k",
  seq: 4,
  epoch: 2,
  state: "{}",
  lane: "l",
  dueAt: 7,
  lease: { owner: "o", until: 9 },
};
const locked = { id: 11, seq: 4, epoch: 2, dueAt: 7, lease: { owner: "o", until: 9 } };

describe("mysql: what becomes of a change", () => {
  test("it is written if the record is at the expected seq and epoch", () => {
    const entries = [1, 2].map((n) => ({ kind: "noted", operation: null, body: String(n) }));
    expect(decideCommit(changeOf(record, { entries }), locked, 99)).toMatchObject({
      kind: "write",
      id: 11,
      isNew: false,
      firstSeq: 5,
      seq: 6,
      dueAt: 7,
      lease: { owner: "o", until: 9 },
    });
  });

  test("it is refused at another seq, another epoch, without a record, and where there should be none", () => {
    const change = changeOf(record);
    expect(decideCommit(change, { ...locked, seq: 5 }, 99).kind).toBe("conflict");
    expect(decideCommit(change, { ...locked, epoch: 3 }, 99).kind).toBe("conflict");
    expect(decideCommit(change, undefined, 99).kind).toBe("conflict");
    expect(decideCommit(newRecord("k"), locked, 99).kind).toBe("conflict");
    expect(decideCommit(newRecord("k"), undefined, 99)).toMatchObject({
      kind: "write",
      id: 99,
      isNew: true,
      firstSeq: 1,
      seq: 1,
    });
  });
});

describe("mysql: how a limit is shared out among lanes", () => {
  const lanes = ["a", "b", "c"].map((lane) => ({ lane, dueAt: 1, room: 9 }));
  test("the earliest of all lanes come first", () => {
    const candidates = [5, 1, 3].flatMap((dueAt, index) =>
      [0, 10].map((later) => ({ lane: lanes[index]?.lane ?? "", dueAt: dueAt + later })),
    );
    expect(sharesOf(lanes, candidates, 4)).toEqual([
      { lane: "a", dueAt: 1, room: 1 },
      { lane: "b", dueAt: 1, room: 2 },
      { lane: "c", dueAt: 1, room: 1 },
    ]);
    expect(sharesOf(lanes, candidates, 1)).toEqual([{ lane: "b", dueAt: 1, room: 1 }]);
    expect(sharesOf(lanes, [], 4)).toEqual([]);
  });
});

describe.skipIf(mysqlUrl === null)("mysql: commits", () => {
  test("entries of one transaction have one time, however many statements they take, and it is the server's", () =>
    MysqlPlace.use(async (place) => {
      const store = await place.opened();
      const before = await store.now();
      const entries = Array.from({ length: 300 }, (_, index) => ({
        kind: "noted",
        operation: null,
        body: String(index),
      }));
      const outcomes = await Promise.all(["a", "b", "c"].map((key) => store.commit(newRecord(key, { entries }))));
      const after = await store.now();
      for (const [index, key] of ["a", "b", "c"].entries()) {
        const outcome = outcomes[index];
        const at = outcome?.kind === "committed" ? outcome.at : 0;
        expect(at >= before && at <= after).toBe(true);
        const stored = await store.entries(key, { kind: "after", after: 0, limit: 1_000 });
        expect(stored).toHaveLength(300);
        expect(new Set(stored.map((entry) => entry.at))).toEqual(new Set([at]));
      }
    }));

  test("a trigger on the table of entries, as for an audit, does not keep changes from being committed", () =>
    MysqlPlace.use(async (place) => {
      const store = await place.opened();
      await place.rows(`create trigger \`${place.prefix}audit\` before insert on \`${place.prefix}entry\`
        for each row set @audited = coalesce(@audited, 0) + 1`);
      const entries = Array.from({ length: 70 }, () => ({ kind: "noted", operation: null, body: "{}" }));
      const outcome = await store.commit(newRecord("k", { entries }));
      const stored = await store.entries("k", { kind: "after", after: 0, limit: 100 });
      expect(stored).toHaveLength(70);
      expect(outcome).toEqual({ kind: "committed", at: stored[0]?.at });
      expect(new Set(stored.map(({ at }) => at)).size).toBe(1);
    }));

  test("ids of resources are never handed out twice, by however many processes", () =>
    MysqlPlace.use(async (place) => {
      const stores = await Promise.all([place.opened(), place.opened(), place.opened()]);
      const keys = Array.from({ length: 900 }, (_, index) => `k${index}`);
      const outcomes = await Promise.all(keys.map(async (key, index) => stores[index % 3]?.commit(newRecord(key))));
      expect(outcomes.every((outcome) => outcome?.kind === "committed")).toBe(true);
      const [row] = await place.rows(
        `select count(*) as entries, count(distinct resource) as resources from \`${place.prefix}entry\``,
      );
      expect([Number(row?.entries), Number(row?.resources)]).toEqual([900, 900]);
    }));

  test("a store whose sequence of ids was restored from an older backup goes on after the newest resource", () =>
    MysqlPlace.use(async (place) => {
      await (await place.opened()).commit(newRecord("first"));
      await place.admin.query(`update \`${place.prefix}sequence\` set next_id = 1`);
      const store = await place.opened();
      expect((await store.commit(newRecord("second"))).kind).toBe("committed");
      expect((await store.entries("first", { kind: "after", after: 0, limit: 9 })).length).toBe(1);
    }));
});

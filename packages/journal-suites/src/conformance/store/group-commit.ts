import assert from "node:assert/strict";
import { limits } from "@osbert/journal";
import type { Change, CommitOutcome } from "@osbert/journal/store";
import { changeOf, newRecord } from "../changes.js";
import type { StoreFixture, StoreTests } from "../store-fixture.js";

/** Many commits at once: they may share a durable write, and nothing else. */
export const groupCommitTests: StoreTests = {
  "J12: 200 commits at once on as many resources all land": async (fixture) => {
    const keys = numbered(200);
    const outcomes = await commitAll(
      fixture,
      keys.map((key) => newRecord(key, traceOf(key, 1))),
    );
    assert.deepEqual(
      kinds(outcomes),
      keys.map(() => "committed"),
    );
    for (const key of keys) await assertTrace(fixture, key, 1);

    const records = await Promise.all(keys.map((key) => fixture.record(key)));
    const again = await commitAll(
      fixture,
      records.map((record) => changeOf(record, traceOf(record.key, 2))),
    );
    assert.deepEqual(
      kinds(again),
      keys.map(() => "committed"),
    );
    for (const key of keys) await assertTrace(fixture, key, 2);
  },

  "J12: in a batch of commits a refused one does not hurt the others": async (fixture) => {
    const stale = await fixture.create("stale");
    await fixture.change(stale);
    const [left, right] = [await fixture.create("left"), await fixture.create("right")];
    const [gone] = [await fixture.create("gone")];
    await fixture.store.remove("gone", gone);

    const batch: readonly (readonly [Change, CommitOutcome["kind"]])[] = [
      [newRecord("new 1", traceOf("new 1", 1)), "committed"],
      [changeOf(stale), "conflict"],
      [changeOf(left, { state: '"changed"' }), "committed"],
      [newRecord("right"), "conflict"],
      [changeOf({ ...right, epoch: 7 }), "conflict"],
      [changeOf(gone), "conflict"],
      [changeOf({ ...right, key: "never there" }), "conflict"],
      [changeOf(right, { state: '"changed"' }), "committed"],
      [newRecord("new 2", traceOf("new 2", 1)), "committed"],
    ];
    const outcomes = await commitAll(
      fixture,
      batch.map(([change]) => change),
    );
    assert.deepEqual(
      kinds(outcomes),
      batch.map(([, kind]) => kind),
    );
    assert.deepEqual(await fixture.find(), ["left", "new 1", "new 2", "right", "stale"]);
    for (const key of ["left", "right"]) {
      assert.deepEqual([(await fixture.record(key)).state, await fixture.seqs(key)], ['"changed"', [1, 2]]);
    }
    assert.deepEqual(await fixture.seqs("stale"), [1, 2]);
    for (const key of ["new 1", "new 2"]) await assertTrace(fixture, key, 1);
  },

  "J12: commits that build on each other and are sent at once end as they were answered": async (fixture) => {
    // The second may come before the first and be refused. What must not be is an answer that differs from what happened.
    const keys = numbered(50);
    const batch = keys.flatMap((key) => {
      const first = newRecord(key, { state: "1" });
      const second: Change = {
        ...newRecord(key, { state: "2" }),
        expected: { seq: 1, epoch: 0 },
        dueAt: "keep",
        lease: "keep",
      };
      return [first, second];
    });
    const outcomes = kinds(await commitAll(fixture, batch));
    for (const [index, key] of keys.entries()) {
      const [first, second] = outcomes.slice(2 * index);
      assert.equal(first, "committed");
      const expected = second === "committed" ? ["2", [1, 2]] : ["1", [1]];
      assert.deepEqual([(await fixture.record(key)).state, await fixture.seqs(key)], expected);
    }
  },

  "J12: a batch of commits may be far larger than one of them": async (fixture) => {
    const body = JSON.stringify("x".repeat(limits.jsonBytes - 2));
    const keys = numbered(24);
    const entries = [{ kind: "large", operation: null, body }];
    const outcomes = await commitAll(
      fixture,
      keys.map((key) => newRecord(key, { entries })),
    );
    assert.deepEqual(
      kinds(outcomes),
      keys.map(() => "committed"),
    );
    for (const key of keys)
      assert.ok((await fixture.entries(key))[0]?.body === body, `the entry of ${key} must be kept whole`);
  },

  "J12: commits, reads and claims at once do not mix up resources": async (fixture) => {
    const keys = numbered(60);
    await commitAll(
      fixture,
      keys.map((key) => newRecord(key, { ...traceOf(key, 1), dueAt: 0 })),
    );
    const work = keys.map(async (key) => {
      const record = await fixture.record(key);
      assert.equal(record.key, key);
      return [key, await fixture.store.commit(changeOf(record, traceOf(key, 2)))] as const;
    });
    const claims = ["a", "b"].map((owner) => fixture.claim(owner, { limit: 25 }));
    for (const [key, outcome] of await Promise.all(work))
      await assertTrace(fixture, key, outcome.kind === "committed" ? 2 : 1);
    const claimed = (await Promise.all(claims)).flatMap((answer) => answer.claimed);
    assert.equal(new Set(claimed.map(({ key }) => key)).size, claimed.length);
  },
};

function commitAll(fixture: StoreFixture, changes: readonly Change[]): Promise<readonly CommitOutcome[]> {
  return Promise.all(changes.map((change) => fixture.store.commit(change)));
}

function kinds(outcomes: readonly CommitOutcome[]): readonly CommitOutcome["kind"][] {
  return outcomes.map(({ kind }) => kind);
}

function numbered(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `resource ${String(index).padStart(3, "0")}`);
}

/** What the n-th change of a resource leaves, told apart from that of every other resource. */
function traceOf(key: string, n: number) {
  const text = JSON.stringify(`${key}, ${n}`);
  return {
    state: text,
    lane: `lane of ${key}`,
    token: `${key}/${n}`,
    entries: [{ kind: `change ${n}`, operation: `op of ${key}`, body: text }],
    putParts: [
      { id: `part of ${key}`, body: text },
      { id: "shared id", body: text },
    ],
    addLabels: [{ name: "of", value: key }],
  };
}

async function assertTrace(fixture: StoreFixture, key: string, n: number): Promise<void> {
  const trace = traceOf(key, n);
  const record = await fixture.record(key);
  assert.deepEqual([record.seq, record.state, record.lane], [n, trace.state, trace.lane]);
  const entries = (await fixture.entries(key)).map(({ seq, token, kind, operation, body }) => ({
    seq,
    token,
    kind,
    operation,
    body,
  }));
  const expected = Array.from({ length: n }, (_, index) => {
    const { token, entries } = traceOf(key, index + 1);
    return { seq: index + 1, token, ...entries[0] };
  });
  assert.deepEqual(entries, expected);
  assert.deepEqual(await fixture.parts(key), { [`part of ${key}`]: trace.state, "shared id": trace.state });
  assert.deepEqual(await fixture.labelled("of", key), [key]);
}

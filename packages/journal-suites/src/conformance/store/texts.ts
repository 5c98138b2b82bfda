import assert from "node:assert/strict";
import { limits } from "@osbert/journal";
import { changeOf } from "../changes.js";
import type { StoreTests } from "../store-fixture.js";
import { byBytes, hostileTexts } from "./hostile-texts.js";

/** A store never looks into the texts it is given. */
export const textsTests: StoreTests = {
  "J2: keys that differ in any way are different resources": async (fixture) => {
    await Promise.all(hostileTexts.map((key) => fixture.create(key, traceOf(key))));
    assert.deepEqual(await fixture.find(), [...hostileTexts].sort(byBytes));
    for (const key of hostileTexts) {
      const record = await fixture.record(key);
      assert.deepEqual([record.key, record.state, record.seq], [key, JSON.stringify(key), 1]);
      assert.deepEqual(
        (await fixture.entries(key)).map(({ body }) => body),
        [JSON.stringify(key)],
      );
      assert.deepEqual(await fixture.parts(key), { part: JSON.stringify(key) });
      await fixture.refuses({ ...changeOf(record), expected: null });
    }
    const [first, ...rest] = hostileTexts;
    assert.equal(await fixture.store.remove(first ?? "", { seq: 1, epoch: 0 }), true);
    assert.deepEqual(await fixture.find(), [...rest].sort(byBytes));
  },

  "J2: part ids that differ in any way are different parts": async (fixture) => {
    const putParts = hostileTexts.map((id) => ({ id, body: JSON.stringify(id) }));
    const record = await fixture.create("k", { putParts });
    const read = await fixture.store.read("k", hostileTexts);
    assert.deepEqual(new Map(read?.parts), new Map(putParts.map(({ id, body }) => [id, body])));
    let current = record;
    for (const id of hostileTexts) {
      assert.deepEqual([...((await fixture.store.read("k", [id]))?.parts ?? [])], [[id, JSON.stringify(id)]]);
      current = await fixture.change(current, { deleteParts: [id] });
    }
    assert.deepEqual(await fixture.parts("k"), {});
  },

  "J2: every text of a record and its entries is kept exactly": async (fixture) => {
    for (const [index, text] of hostileTexts.entries()) {
      const entry = { kind: text, operation: text, body: text };
      const lease = { owner: text, until: 5 };
      const record = await fixture.create(`k${index}`, {
        state: text,
        lane: text,
        token: text,
        lease,
        entries: [entry],
      });
      assert.deepEqual([record.state, record.lane, record.lease], [text, text, lease]);
      const [stored] = await fixture.entries(`k${index}`);
      assert.deepEqual(stored, { ...entry, seq: 1, at: fixture.clock.now(), token: text });
    }
  },

  "J2: owners that differ in any way are different owners": async (fixture) => {
    const owners = hostileTexts;
    await Promise.all(owners.map((_, index) => fixture.create(`k${index}`, { dueAt: index })));
    for (const [index, owner] of owners.entries()) {
      const { claimed } = await fixture.claim(owner, { limit: 1 });
      assert.deepEqual([claimed[0]?.key, claimed[0]?.lease?.owner], [`k${index}`, owner]);
    }
    const held = owners.map((_, index) => ({ key: `k${index}`, epoch: 1 }));
    for (const [index, owner] of owners.entries()) {
      assert.deepEqual(await fixture.store.renew(owner, held, 1_000), [`k${index}`]);
      await fixture.store.release(
        owner,
        held.map((each) => ({ ...each, seq: 1, dueAt: null })),
      );
      assert.equal((await fixture.record(`k${index}`)).lease, null);
    }
  },

  "J2: JSON texts are kept letter for letter": async (fixture) => {
    const texts = [
      '{"b":1,"a":2}',
      '{"a":1,"a":2}',
      '{ "a" : [ 1 , 2 ] }',
      "1.0",
      "1e400",
      "12345678901234567890.123456789",
      '"\\u0000"',
      '"\\ud800"',
      '"\\/"',
      '"caf\\u00e9 café cafe\u0301"',
      '"\u2028\u2029"',
      '"😀\\ud83d\\ude00"',
      "\n\tnull\n",
      '""',
      "{}",
    ];
    for (const [index, text] of texts.entries()) {
      const entries = [{ kind: "noted", operation: null, body: text }];
      const record = await fixture.create(`k${index}`, { state: text, entries, putParts: [{ id: "p", body: text }] });
      const [entry] = await fixture.entries(`k${index}`);
      assert.deepEqual([record.state, entry?.body, await fixture.parts(`k${index}`)], [text, text, { p: text }]);
    }
  },

  "J2: keys and part ids may be as long as the limit, and differ in the last byte": async (fixture) => {
    for (const [name, [left, right]] of Object.entries(twins(limits.keyBytes))) {
      const ids = { putParts: [left, right].map((id) => ({ id, body: JSON.stringify(id) })) };
      await fixture.create(left, { ...ids, state: '"left"' });
      await fixture.create(right, { ...ids, state: '"right"' });
      assert.deepEqual(
        [(await fixture.record(left)).state, (await fixture.record(right)).state],
        ['"left"', '"right"'],
        name,
      );
      assert.deepEqual(await fixture.partIds(left), [left, right], name);
      assert.deepEqual(await fixture.find({ prefix: left.slice(0, -2) }), [left, right], name);
      assert.deepEqual(await fixture.find({ prefix: right }), [right], name);
      assert.deepEqual(await fixture.find({ prefix: left.slice(0, -2), after: left }), [right], name);
    }
  },

  "J2: lanes, labels, owners, kinds, operations and tokens may be as long as the limits": async (fixture) => {
    const long = {
      lane: twins(limits.laneBytes),
      name: twins(limits.labelNameBytes),
      value: twins(limits.labelValueBytes),
      owner: twins(limits.ownerBytes),
      kind: twins(limits.entryKindBytes),
      operation: twins(limits.operationIdBytes),
      token: twins(32),
    };
    for (const script of ["latin", "emoji"] as const) {
      for (const side of [0, 1] as const) {
        const key = `${script} ${side}`;
        const lease = { owner: long.owner[script][side], until: fixture.clock.now() + 1 };
        const label = { name: long.name[script][side], value: long.value[script][side] };
        const entry = { kind: long.kind[script][side], operation: long.operation[script][side], body: "{}" };
        const lane = long.lane[script][side];
        const token = long.token[script][side];
        const record = await fixture.create(key, {
          lane,
          lease,
          token,
          entries: [entry],
          addLabels: [label],
          dueAt: 0,
        });
        assert.deepEqual([record.lane, record.lease], [lane, lease]);
        const [stored] = await fixture.entries(key);
        assert.deepEqual(stored, { ...entry, seq: 1, at: fixture.clock.now(), token });
        assert.deepEqual(await fixture.labelled(label.name, label.value), [key]);
        assert.deepEqual(await fixture.labelled(label.name, label.value.slice(0, -2)), []);
        assert.deepEqual(await fixture.claimedKeys(lease.owner, { laneRoom: 0, rooms: new Map([[lane, 1]]) }), [key]);
      }
    }
  },

  "J11: owners whose names are as long as the limit attend and leave": async (fixture) => {
    await fixture.store.attend("reaper", () => {});
    for (const [script, [stays, goes]] of Object.entries(twins(limits.ownerBytes))) {
      await fixture.store.attend(stays, () => {});
      await fixture.store.attend(goes, () => {});
      const held = await fixture.createHeld(`stays ${script}`, stays);
      await fixture.createHeld(`goes ${script}`, goes);
      await fixture.store.leave(goes);
      assert.equal(await fixture.store.reap("reaper"), 1);
      assert.deepEqual(await fixture.record(`stays ${script}`), held);
      assert.deepEqual(await fixture.claimedKeys("reaper"), [`goes ${script}`]);
    }
  },

  "J2: a resource may have as many labels as the limit": async (fixture) => {
    const labels = Array.from({ length: limits.labels }, (_, index) => {
      const text = String(index).padStart(2, "0");
      return { name: text.padEnd(limits.labelNameBytes, "n"), value: text.padEnd(limits.labelValueBytes, "v") };
    });
    const record = await fixture.create("k", { addLabels: labels });
    for (const label of labels) assert.deepEqual(await fixture.find({ label }), ["k"]);
    await fixture.change(record, { removeLabels: labels });
    for (const label of labels) assert.deepEqual(await fixture.find({ label }), []);
  },

  "J2: bodies of 1 MiB are kept exactly": async (fixture) => {
    const latin = JSON.stringify("x".repeat(limits.jsonBytes - 2));
    const emoji = JSON.stringify("😀".repeat((limits.jsonBytes - 4) / 4));
    const escapes = JSON.stringify("\\'\"%\n".repeat(100_000)).slice(0, limits.jsonBytes);
    for (const [key, body] of Object.entries({ latin, emoji, escapes })) {
      const entries = [{ kind: "large", operation: null, body }];
      const first = await fixture.create(key, { state: body, entries, putParts: [{ id: "p", body }] });
      // The state holds more than the data of a resource, so it may be larger.
      const second = await fixture.change(first, {
        state: body + body,
        entries,
        putParts: [
          { id: "p", body },
          { id: "q", body },
        ],
      });
      const stored = await fixture.entries(key);
      const read = await fixture.store.read(key, ["p", "q"]);
      assert.ok(second.state === body + body, `the ${key} state must be kept whole`);
      const kept = [first.state, ...stored.map((entry) => entry.body), read?.parts.get("p"), read?.parts.get("q")];
      // Not deepEqual: nobody wants to read the difference of two such texts.
      assert.deepEqual(
        kept.map((text) => text === body),
        [true, true, true, true, true],
        `the ${key} texts must be kept whole`,
      );
      assert.equal((await fixture.find({ prefix: key })).length, 1);
    }
  },
};

/** Two texts of exactly so many bytes that differ in the last character alone, in byte order. */
function twins(bytes: number): {
  readonly latin: readonly [string, string];
  readonly emoji: readonly [string, string];
} {
  const head = "e".repeat(bytes - 1);
  const emoji = "😀".repeat(bytes / 4 - 1);
  return { latin: [`${head}1`, `${head}2`], emoji: [`${emoji}😀`, `${emoji}😁`] };
}

/** What a resource leaves that is told apart by its key. */
function traceOf(key: string) {
  const body = JSON.stringify(key);
  return { state: body, entries: [{ kind: "noted", operation: null, body }], putParts: [{ id: "part", body }] };
}

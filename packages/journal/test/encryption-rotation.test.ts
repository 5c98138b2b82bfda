import type { StoreUnderTest } from "@osbert/journal-suites/conformance";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { type EncryptedStore, encryptedStore, type RotationProgress } from "../src/encryption/index.js";
import { openJournal } from "../src/open-journal.js";
import type { Store, StoredRecord } from "../src/store.js";
import { memoryStore } from "../src/stores/memory.js";
import { interposedStore } from "../src/testing/index.js";
import { contentsOf, keysUsed, ringOf, textsOf } from "./encryption-fixture.js";
import { accept, outcomeOf } from "./faults-fixture.js";
import { change } from "./postgres-change.js";
import { mariadb, memory, postgres, sqlite } from "./stores-under-test.js";

const kinds = {
  work: {
    run: async (operation: { step(name: string, work: () => string): Promise<string> }) => {
      await operation.step("one", () => "first");
      return operation.step("two", () => "second");
    },
  },
};

async function opened(bare: Store, ...ids: readonly string[]): Promise<EncryptedStore> {
  const store = encryptedStore(bare, ringOf(...ids));
  await store.open();
  return store;
}

/** Resources of many kinds: leased, due, with parts and entries of more than a page. */
async function fill(store: Store, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    await store.commit(change(`k${index}`, null, { state: `"state ${index}"`, dueAt: index % 3 === 0 ? 0 : null }));
  }
  await store.claim({ owner: "o", leaseMs: 3_600_000, limit: 5, laneRoom: 5, rooms: new Map() });
  const many = Array.from({ length: 120 }, (_, index) => ({ id: `p${index}`, body: `"part ${index}"` }));
  await store.commit(
    change("rich", null, {
      putParts: many,
      entries: many.map(({ body }) => ({ kind: "noted", operation: null, body })),
      addLabels: [{ name: "n", value: "v" }],
    }),
  );
}

const isUsable = <T>(subject: T | undefined): subject is T => subject !== undefined;
const [postgresUrl, mysqlUrl] = [inject("postgresUrl"), inject("mysqlUrl")];
const subjects: readonly StoreUnderTest[] = [
  memory,
  sqlite,
  postgresUrl === null ? undefined : postgres(postgresUrl),
  mysqlUrl === null ? undefined : mariadb(mysqlUrl),
].filter(isUsable);

describe.each(subjects)("on $name", (subject) => {
  /** Stores on one place, none of them open, each for use after the one before was closed. */
  async function bareStores(): Promise<() => Promise<Store>> {
    const place = await subject.open(() => Date.now());
    const given: Store[] = [];
    onTestFinished(async () => {
      for (const store of given) await store.close();
      await place.dispose();
    });
    return async () => {
      const store = given.length === 0 ? place.store : await place.another();
      given.push(store);
      return store;
    };
  }

  test("a rotation encrypts what was not encrypted, under the newer key what was under an older one, and changes nothing else", async () => {
    const next = await bareStores();
    const plain = await next();
    await plain.open();
    await fill(plain, 130);
    const clear = await contentsOf(plain);
    await plain.close();
    const total = textsOf(clear).length;
    for (const [ring, unused] of [
      [["a"], []],
      [["b", "a"], ["a"]],
    ] as const) {
      const bare = await next();
      const store = await opened(bare, ...ring);
      const told: RotationProgress[] = [];
      const report = await store.rotate({ onProgress: (progress) => told.push(progress) });
      expect(report).toEqual({ resources: 131, texts: total, left: 0, leftPlain: 0, unused });
      expect(keysUsed(textsOf(await contentsOf(bare)))).toEqual({ [ring[0]]: total });
      expect(await contentsOf(store)).toEqual(clear);
      expect(told.map(({ walk }) => walk)).toEqual([1, 1, 2, 2]);
      expect(told.at(-1)).toMatchObject({ resources: 131, texts: total });
      expect(await store.rotate()).toEqual({ resources: 131, texts: 0, left: 0, leftPlain: 0, unused });
      await store.close();
    }
  });

  test("engines go on while their store is encrypted anew", async () => {
    const next = await bareStores();
    const old = await openJournal({ store: encryptedStore(await next(), ringOf("a")), kinds });
    const waiting = await accept(old, "waiting", { kind: "work", delayMs: 500 });
    await Promise.all(Array.from({ length: 40 }, (_, index) => accept(old, `old ${index}`, { kind: "work" })));
    await old.stop();

    const bare = await next();
    const store = encryptedStore(bare, ringOf("b", "a"));
    const journal = await openJournal({ store, kinds });
    await journal.start();
    const accepting = Promise.all(
      Array.from({ length: 60 }, async (_, index) => {
        const key = `new ${index % 20}`;
        return outcomeOf(journal, key, await accept(journal, key, { kind: "work" }));
      }),
    );
    const report = await store.rotate();
    expect(report).toMatchObject({ left: 0, unused: ["a"] });
    const outcomes = [...(await accepting), await outcomeOf(journal, "waiting", waiting)];
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(["succeeded"]));
    expect(Object.keys(keysUsed(textsOf(await contentsOf(bare))))).toEqual(["b"]);
    await journal.stop();
  });
});

describe("a rotation", () => {
  test("that is aborted leaves every text readable, and the next one does the rest", async () => {
    const bare = memoryStore();
    await fill(await opened(bare, "a"), 250);
    const store = await opened(bare, "b", "a");
    const clear = await contentsOf(store);
    const stop = new AbortController();
    const rotating = store.rotate({ signal: stop.signal, onProgress: () => stop.abort(new Error("enough")) });
    await expect(rotating).rejects.toThrow("enough");
    const used = keysUsed(textsOf(await contentsOf(bare)));
    expect([(used.a ?? 0) > 0, (used.b ?? 0) > 0]).toEqual([true, true]);
    expect(await contentsOf(store)).toEqual(clear);
    await expect(opened(bare, "b")).rejects.toMatchObject({ code: "key-missing" });
    expect(await store.rotate()).toMatchObject({ texts: used.a, left: 0, unused: ["a"] });
    expect(await contentsOf(await opened(bare, "b"))).toEqual(clear);
  });

  test("does not touch what a commit has changed since it was read", async () => {
    const bare = memoryStore();
    await (await opened(bare, "a")).commit(
      change("k", null, { state: '"old"', putParts: [{ id: "p", body: '"old"' }] }),
    );
    const writer = await opened(bare, "b", "a");
    let commits = 0;
    const racing = interposedStore(bare, async ({ method }, go) => {
      if (method === "replaceTexts" && commits++ < 2) await rewrite(writer, `"new ${commits}"`);
      return go();
    });
    const report = await (await opened(racing, "b", "a")).rotate();
    expect(report).toMatchObject({ left: 0, unused: ["a"] });
    const read = await writer.read("k", ["p"]);
    expect([read?.record.state, read?.parts.get("p"), read?.record.seq]).toEqual(['"new 2"', '"new 2"', 3]);
    expect(Object.keys(keysUsed(textsOf(await contentsOf(bare))))).toEqual(["b"]);
  });

  test("does not call a key unused that another process still writes under", async () => {
    const bare = memoryStore();
    const stale = await opened(bare, "a", "b");
    await fill(stale, 3);
    const store = await opened(bare, "b", "a");
    let written = 0;
    const report = await store.rotate({
      onProgress: () => void stale.commit(change(`stale ${written++}`, null)),
    });
    expect(report).toMatchObject({ unused: [], left: 2 });
    await expect(opened(bare, "b")).rejects.toMatchObject({ code: "key-missing" });
    expect(await store.rotate()).toMatchObject({ unused: ["a"], left: 0 });
  });

  test("leaves what cannot be read as it is, and its key in use", async () => {
    const bare = memoryStore();
    const first = await opened(bare, "a");
    for (const key of ["good", "broken", "locked"]) await first.commit(change(key, null));
    const texts = { broken: "osbert-enc:1:a:AAAA", locked: "osbert-enc:1:unknown:AAAA" };
    for (const [key, to] of Object.entries(texts)) {
      const { state: from, seq } = (await bare.read(key, []))?.record ?? expect.fail();
      await bare.replaceTexts(key, [{ place: { kind: "state", seq }, from, to }]);
    }
    const store = await opened(bare, "b", "a");
    expect(await store.rotate()).toMatchObject({ texts: 4, left: 2, leftPlain: 0, unused: [] });
    for (const [key, text] of Object.entries(texts)) expect((await bare.read(key, []))?.record.state).toBe(text);
  });

  test("is refused if its ring lacks a key that was registered meanwhile", async () => {
    const bare = memoryStore();
    const store = await opened(bare, "a");
    await opened(bare, "b", "a");
    await expect(store.rotate()).rejects.toMatchObject({
      code: "key-missing",
      message: expect.stringContaining('"b"'),
    });
  });

  test("with a store that fails tells so, and nothing is lost", async () => {
    const bare = memoryStore();
    await fill(await opened(bare, "a"), 5);
    let calls = 0;
    const failing = interposedStore(bare, async ({ method }, go) => {
      const answer = await go();
      if (method === "replaceTexts" && ++calls === 4) throw new Error("the connection broke");
      return answer;
    });
    const store = await opened(failing, "b", "a");
    const clear = await contentsOf(store);
    await expect(store.rotate()).rejects.toThrow("the connection broke");
    expect(await contentsOf(store)).toEqual(clear);
    expect(await store.rotate()).toMatchObject({ left: 0, unused: ["a"] });
    expect(await contentsOf(store)).toEqual(clear);
  });
});

describe("a key that a rotation found unused", () => {
  async function rotated(): Promise<Store> {
    const bare = memoryStore();
    await fill(await opened(bare, "a"), 5);
    expect(await (await opened(bare, "b", "a")).rotate()).toMatchObject({ unused: ["a"] });
    return bare;
  }

  test("may be taken out of the ring, and is forgotten then", async () => {
    const bare = await rotated();
    const store = await opened(bare, "b");
    expect(keysUsed(textsOf(await contentsOf(store)))).toHaveProperty("plain");
    expect((await bare.read("osbert.keys", []))?.record.state).not.toContain('"a"');
    // Its id is free again, as if it had never been.
    await opened(bare, "a'", "b");
  });

  test("may stay in the ring", async () => {
    const bare = await rotated();
    await opened(bare, "b", "a");
    await opened(bare, "b", "a");
    await expect(opened(bare, "b", "a'")).rejects.toMatchObject({ code: "key-wrong" });
  });

  test("is in use again once a process opens the store to write under it", async () => {
    const bare = await rotated();
    await opened(bare, "a", "b");
    await expect(opened(bare, "b")).rejects.toMatchObject({ code: "key-missing" });
  });
});

async function rewrite(store: Store, text: string): Promise<void> {
  const record = (await store.read("k", []))?.record as StoredRecord;
  await store.commit(change("k", record, { state: text, putParts: [{ id: "p", body: text }] }));
}

import { describe, expect, test } from "vitest";
import { encryptedStore } from "../src/encryption/index.js";
import type { Operation } from "../src/engine/operation-kind.js";
import type { JournalEvent } from "../src/observe.js";
import { openJournal } from "../src/open-journal.js";
import type { Store, TextPlace } from "../src/store.js";
import { memoryStore } from "../src/stores/memory.js";
import { postgresStore } from "../src/stores/postgres/index.js";
import { sqliteStore } from "../src/stores/sqlite/index.js";
import { faultyStore } from "../src/testing/index.js";
import { contentsOf, keysUsed, ringOf, textsOf } from "./encryption-fixture.js";
import { accept, by, kindsOf, outcomeOf, startJournal, until } from "./faults-fixture.js";
import { change } from "./postgres-change.js";
import { PostgresPlace, postgresUrl } from "./postgres-support.js";
import { databasePath } from "./sqlite-fixture.js";

const kinds = { work: { run: async () => "done" } };
const stateAt = (seq: number): TextPlace => ({ kind: "state", seq });
const part = (id: string): TextPlace => ({ kind: "part", id });
const entry = (seq: number): TextPlace => ({ kind: "entry", seq });

/** A memory store, and an open encrypted one on it. */
async function pair(...ids: readonly string[]): Promise<{ readonly bare: Store; readonly store: Store }> {
  const bare = memoryStore();
  return { bare, store: await opened(bare, ...ids) };
}

async function opened(bare: Store, ...ids: readonly string[]): Promise<Store> {
  const store = encryptedStore(bare, ringOf(...ids));
  await store.open();
  return store;
}

const rich = {
  state: '"the secret state"',
  putParts: [
    { id: "p", body: '"secret of p"' },
    { id: "q", body: '"secret of q"' },
  ],
  entries: [
    { kind: "one", operation: "op", body: '"secret 1"' },
    { kind: "one", operation: "op", body: '"secret 2"' },
  ],
  addLabels: [{ name: "n", value: "v" }],
};

describe("what is stored", () => {
  test("all texts are encrypted under the active key, and nothing else is changed", async () => {
    const { bare, store } = await pair("a", "b");
    await store.commit(change("k", null, rich));
    const [stored] = await contentsOf(bare);
    expect(keysUsed(textsOf([stored ?? expect.fail()]))).toEqual({ a: 5 });
    expect(JSON.stringify(stored)).not.toContain("secret");
    expect(stored).toMatchObject({
      record: { key: "k", seq: 2, lane: "main", dueAt: null },
      entries: [{ kind: "one", operation: "op" }, { seq: 2 }],
    });
    expect(await bare.find({ label: { name: "n", value: "v" }, after: null, limit: 5 })).toHaveLength(1);
    const [clear] = await contentsOf(store);
    expect(textsOf([clear ?? expect.fail()])).toEqual([
      rich.state,
      ...rich.putParts.map(({ body }) => body),
      ...rich.entries.map(({ body }) => body),
    ]);
  });

  test("inputs and briefs are, in the record, in the queue behind it and in the entries, and polls that rest", async () => {
    const { bare, store } = await pair("a");
    const run = (operation: Operation) => operation.poll("answer", () => undefined, { everyMs: 60_000 });
    const journal = await openJournal({ store, kinds: { work: { run } } });
    await journal.start();
    const accept = Array.from({ length: 70 }, () => ({
      kind: "work",
      part: "p",
      input: "secret input",
      brief: "secret brief",
    }));
    await journal.transact("k", () => ({ result: 0, change: { accept } }), {
      by: { actor: { type: "user", subject: "ann" } },
    });
    await until("it rests", async () => (await journal.read("k"))?.open[0]?.polls !== undefined);
    const contents = await contentsOf(bare);
    expect(contents[0]?.parts.length).toBeGreaterThan(0);
    expect(JSON.stringify(contents)).not.toContain("secret");
    const { items } = await journal.operations("k");
    expect(items.map(({ input, brief }) => [input, brief])).toEqual(accept.map(({ input, brief }) => [input, brief]));
    await journal.stop({ drainMs: 0 });
  });

  test("the same text is stored as another one each time", async () => {
    const { bare, store } = await pair("a");
    for (const key of ["k1", "k2"]) await store.commit(change(key, null));
    const first = (await store.read("k1", []))?.record ?? expect.fail();
    await store.commit(change("k1", first));
    const texts = textsOf(await contentsOf(bare));
    expect(new Set(texts).size).toBe(texts.length);
  });

  test("texts from before are read, and encrypted when they are written again", async () => {
    const bare = memoryStore();
    await bare.commit(change("k", null, rich));
    const store = await opened(bare, "a");
    const before = textsOf(await contentsOf(store));
    expect(before).toContain('"secret of p"');
    const record = (await store.read("k", []))?.record ?? expect.fail();
    await store.commit(change("k", record, { state: '"new"', putParts: [{ id: "p", body: '"new"' }] }));
    expect(keysUsed(textsOf(await contentsOf(bare)))).toEqual({ a: 3, plain: 3 });
    expect(textsOf(await contentsOf(store))).toEqual([
      '"new"',
      '"new"',
      '"secret of q"',
      '"secret 1"',
      '"secret 2"',
      "{}",
    ]);
  });

  test("without acceptPlain a text that is not encrypted is not read", async () => {
    const bare = memoryStore();
    await bare.commit(change("k", null, rich));
    const store = encryptedStore(bare, ringOf("a"), { acceptPlain: false });
    await store.open();
    await expect(store.read("k", ["p"])).rejects.toMatchObject({ code: "unreadable" });
    expect((await store.read("k", []))?.record.state).not.toContain("secret");
  });
});

describe("a text that was altered or moved", () => {
  /** Puts the stored text of one place into another one. */
  async function move(bare: Store, from: [string, TextPlace], to: [string, TextPlace]): Promise<void> {
    const at = async ([key, place]: [string, TextPlace]) => {
      const found = (await contentsOf(bare)).find(({ record }) => record.key === key) ?? expect.fail();
      if (place.kind === "state") return found.record.state;
      if (place.kind === "part") return found.parts.find(({ id }) => id === place.id)?.body ?? "";
      return found.entries.find(({ seq }) => seq === place.seq)?.body ?? "";
    };
    const replacement = { place: to[1], from: await at(to), to: await at(from) };
    expect(await bare.replaceTexts(to[0], [replacement])).toBe(1);
  }

  test.each<[string, [string, TextPlace], [string, TextPlace]]>([
    ["the state of another resource", ["k2", stateAt(2)], ["k1", stateAt(2)]],
    ["the part of another resource", ["k2", part("p")], ["k1", part("p")]],
    ["another part of its resource", ["k1", part("q")], ["k1", part("p")]],
    ["the entry of another resource", ["k2", entry(1)], ["k1", entry(1)]],
    ["another entry of its resource", ["k1", entry(2)], ["k1", entry(1)]],
    ["an entry in place of a part", ["k1", entry(1)], ["k1", part("p")]],
    ["a part in place of the state", ["k1", part("p")], ["k1", stateAt(2)]],
  ])("is found out: %s", async (_, from, to) => {
    const { bare, store } = await pair("a");
    for (const key of ["k1", "k2"]) await store.commit(change(key, null, rich));
    await move(bare, from, to);
    if (to[1].kind === "state") {
      // Given as no JSON, so that what else a page or a claim brings is not lost with it.
      const found = await store.find({ after: null, limit: 5 });
      expect(() => JSON.parse(found[0]?.state ?? "1")).toThrow(SyntaxError);
      expect(found[1]?.state).toBe(rich.state);
    } else {
      const reading =
        to[1].kind === "part" ? store.read("k1", ["p"]) : store.entries("k1", { kind: "numbers", seqs: [1] });
      await expect(reading).rejects.toMatchObject({ code: "unreadable" });
      await expect(reading).rejects.toThrow(/altered, moved or damaged/);
    }
  });

  test("is found out: the state that the resource had before", async () => {
    const { bare, store } = await pair("a");
    await store.commit(change("k", null, rich));
    const old = (await bare.read("k", []))?.record ?? expect.fail();
    await store.commit(change("k", old, { state: '"newer"' }));
    const now = (await bare.read("k", []))?.record ?? expect.fail();
    await bare.replaceTexts("k", [{ place: stateAt(now.seq), from: now.state, to: old.state }]);
    expect((await store.read("k", []))?.record.state).not.toContain("secret");
  });

  test.each([
    [
      "a letter of it is another one",
      (text: string) => `${text.slice(0, -9)}${text.at(-9) === "A" ? "B" : "A"}${text.slice(-8)}`,
    ],
    ["it was cut", (text: string) => text.slice(0, -6)],
    ["next to nothing is left of it", (text: string) => text.slice(0, 20)],
    ["it names another key", (text: string) => text.replace(":a:", ":b:")],
    ["it names no key", () => "osbert-enc:1:"],
  ])("is found out: %s. Its resource is set aside, and the others go on", async (_, alter) => {
    const { bare, store } = await pair("a", "b");
    const { journal, events } = await startJournal({ store, kinds });
    const id = await accept(journal, "bad", { kind: "work", delayMs: 200 });
    const record = (await bare.read("bad", []))?.record ?? expect.fail();
    await bare.replaceTexts("bad", [{ place: stateAt(record.seq), from: record.state, to: alter(record.state) }]);
    await until("it is set aside", () => kindsOf(events, "set aside").length > 0);
    const other = await accept(journal, "good", { kind: "work" });
    expect(await outcomeOf(journal, "good", other)).toMatchObject({ kind: "succeeded" });
    await until("it is out of the way", async () => (await bare.read("bad", []))?.record.dueAt === null);

    const aside = (await bare.read("bad", []))?.record ?? expect.fail();
    await bare.replaceTexts("bad", [{ place: stateAt(aside.seq), from: aside.state, to: record.state }]);
    await journal.restore("bad");
    expect(await outcomeOf(journal, "bad", id)).toEqual({ kind: "succeeded", result: "done" });
  });

  test("in a newer form is no damage", async () => {
    const { bare, store } = await pair("a");
    await store.commit(change("k", null, { state: "1" }));
    const record = (await bare.read("k", []))?.record ?? expect.fail();
    await bare.replaceTexts("k", [{ place: stateAt(record.seq), from: record.state, to: "osbert-enc:2:anything" }]);
    await expect(store.read("k", [])).rejects.toMatchObject({ code: "schema-newer" });
  });
});

describe("opening", () => {
  test("a ring without a key in use is refused with its id, and nothing is changed", async () => {
    const { bare } = await pair("a");
    const before = await bare.read("osbert.keys", []);
    await expect(opened(bare, "b")).rejects.toMatchObject({
      code: "key-missing",
      message: expect.stringContaining('"a"'),
    });
    expect(await bare.read("osbert.keys", [])).toEqual(before);
    await opened(bare, "b", "a");
    await expect(opened(bare, "a")).rejects.toMatchObject({
      code: "key-missing",
      message: expect.stringContaining('"b"'),
    });
  });

  test("a ring with another key under the id of one in use is refused with its id", async () => {
    const { bare } = await pair("a");
    for (const ring of [["a'"], ["b", "a'"]]) {
      await expect(opened(bare, ...ring)).rejects.toMatchObject({
        code: "key-wrong",
        message: expect.stringContaining('"a"'),
      });
    }
    await opened(bare, "a");
  });

  test("keys in the ring that nothing was encrypted under are nobody's business", async () => {
    const { bare } = await pair("a", "next");
    await opened(bare, "a");
  });

  test("a refused file is let go of, and opens with the right ring", async () => {
    const path = await databasePath();
    const store = await opened(sqliteStore(path), "a");
    await store.commit(change("k", null, rich));
    await store.close();
    await expect(opened(sqliteStore(path), "b")).rejects.toMatchObject({ code: "key-missing" });
    await expect(openJournal({ store: sqliteStore(path), kinds })).rejects.toMatchObject({ code: "key-missing" });
    const again = await opened(sqliteStore(path), "b", "a");
    expect((await again.read("k", ["p"]))?.parts.get("p")).toBe('"secret of p"');
    await again.close();
  });

  test("a journal without keys is refused on an encrypted store, and sets nothing aside", async () => {
    const { bare, store } = await pair("a");
    await store.commit(change("k", null, { ...rich, dueAt: 0 }));
    const before = await contentsOf(bare);
    await expect(openJournal({ store: bare, kinds })).rejects.toMatchObject({
      code: "key-missing",
      message: expect.stringContaining('"a"'),
    });
    expect(await contentsOf(bare)).toEqual(before);
  });

  test("one that was killed after the key was registered and before anything was written opens again", async () => {
    const { bare } = await pair("a");
    expect(await contentsOf(bare)).toEqual([]);
    const store = await opened(bare, "a");
    await store.commit(change("k", null, rich));
    expect((await store.read("k", []))?.record.state).toBe(rich.state);
  });

  test("a store that does not answer when the key is registered is not open, and nothing is encrypted", async () => {
    const bare = faultyStore(memoryStore());
    bare.next("commit", "answer lost");
    await expect(opened(bare, "a")).rejects.toMatchObject({ code: "store-unavailable" });
    await expect(opened(bare, "b")).rejects.toMatchObject({ code: "key-missing" });
    await opened(bare, "a");
  });

  test("processes that open at once with one ring all succeed", async () => {
    const bare = memoryStore();
    const stores = await Promise.all(Array.from({ length: 20 }, () => opened(bare, "a")));
    for (const [index, store] of stores.entries()) await store.commit(change(`k${index}`, null, rich));
    expect(textsOf(await contentsOf(stores[0] ?? expect.fail())).filter((text) => text === rich.state)).toHaveLength(
      20,
    );
  });

  test.each([
    [["a"], ["a'"], "key-wrong"],
    [["a"], ["b"], "key-missing"],
  ])("of processes that open at once with the rings %j and %j one is refused", async (first, second, code) => {
    const bare = memoryStore();
    const ends = await Promise.allSettled([opened(bare, ...first), opened(bare, ...second)]);
    const refused = ends.flatMap((end) => (end.status === "rejected" ? [end.reason as unknown] : []));
    expect(refused).toEqual([expect.objectContaining({ code })]);
  });

  test.each([
    ["no JSON", "unreadable", "x"],
    ["of another shape", "unreadable", '{"version":1,"keys":{"a":null}}'],
    ["empty", "unreadable", '{"version":1,"keys":{}}'],
    ["of a newer Osbert", "schema-newer", '{"version":2}'],
  ])("a register that is %s is refused, and stays as it is", async (_, code, text) => {
    const { bare } = await pair("a");
    const { record } = (await bare.read("osbert.keys", [])) ?? expect.fail();
    await bare.replaceTexts("osbert.keys", [{ place: stateAt(record.seq), from: record.state, to: text }]);
    await expect(opened(bare, "a")).rejects.toMatchObject({ code });
    await expect(openJournal({ store: bare, kinds })).rejects.toMatchObject({ code });
    expect((await bare.read("osbert.keys", []))?.record).toEqual({ ...record, state: text });
  });
});

describe("the register of keys", () => {
  test("is not found, read, claimed, changed or removed by those who use the store", async () => {
    const { bare, store } = await pair("a");
    const before = (await bare.read("osbert.keys", [])) ?? expect.fail();
    expect(await store.read("osbert.keys", [])).toBeUndefined();
    expect(await store.find({ after: null, limit: 5 })).toEqual([]);
    expect(await store.entries("osbert.keys", { kind: "after", after: 0, limit: 5 })).toEqual([]);
    expect(await store.parts("osbert.keys", { prefix: "", after: null, limit: 5 })).toEqual([]);
    expect((await store.claim({ owner: "o", leaseMs: 1, limit: 9, laneRoom: 9, rooms: new Map() })).claimed).toEqual(
      [],
    );
    await expect(store.commit(change("osbert.keys", null))).rejects.toMatchObject({ code: "invalid-key" });
    expect(await store.remove("osbert.keys", before.record)).toBe(false);
    await store.setAside("osbert.keys");
    await store.restore("osbert.keys");
    expect(
      await store.replaceTexts("osbert.keys", [
        { place: stateAt(before.record.seq), from: before.record.state, to: "x" },
      ]),
    ).toBe(0);
    expect(await bare.read("osbert.keys", [])).toEqual(before);
  });

  test("leaves no gap in the pages of what is found", async () => {
    const { store } = await pair("a");
    const keys = ["a", "o", "osbert.", "osbert.key", "osbert.keyz", "osbertz", "z"];
    for (const key of keys) await store.commit(change(key, null));
    for (const limit of [1, 2, 3, 7, 10]) {
      const seen: string[] = [];
      for (;;) {
        const page = await store.find({ after: seen.at(-1) ?? null, limit });
        seen.push(...page.map(({ key }) => key));
        if (page.length < limit) break;
      }
      expect(seen).toEqual(keys);
      const first = await store.find({ prefix: "osbert.", after: null, limit });
      expect(first.map(({ key }) => key)).toEqual(keys.slice(2, 5).slice(0, limit));
    }
  });

  test("is no resource of a journal, encrypted or not", async () => {
    const { store } = await pair("a");
    for (const journal of [await openJournal({ store, kinds }), await openJournal({ store: memoryStore(), kinds })]) {
      await expect(journal.read("osbert.keys")).rejects.toMatchObject({ code: "invalid-key" });
      await expect(accept(journal, "osbert.keys", { kind: "work" })).rejects.toMatchObject({ code: "invalid-key" });
      expect((await journal.find()).items).toEqual([]);
      await journal.stop();
    }
  });

  test("keeps one entry, however often it changes", async () => {
    const bare = memoryStore();
    const ids = Array.from({ length: 10 }, (_, index) => `k${index}`);
    for (const count of ids.keys()) await opened(bare, ...ids.slice(0, count + 1).reverse());
    expect(await bare.entries("osbert.keys", { kind: "after", after: 0, limit: 99 })).toHaveLength(1);
  });
});

describe("a process whose ring lacks a key that others have begun to use", () => {
  test("says so, leaves the resource to the others and goes on with its own", async () => {
    const bare = memoryStore();
    const old = await startJournal({ store: await opened(bare, "a"), kinds });
    const theirs = await opened(bare, "b", "a");
    const journal = await openJournal({ store: theirs, kinds });
    const id = await accept(journal, "theirs", { kind: "work" });
    await until("it is told", () =>
      kindsOf(old.events, "store failed").some((event) => "error" in event && String(event.error).includes('"b"')),
    );
    await expect(old.journal.read("theirs")).rejects.toMatchObject({ code: "key-missing" });
    await expect(old.journal.find()).rejects.toMatchObject({ code: "key-missing" });
    const own = await accept(old.journal, "own", { kind: "work" });
    expect(await outcomeOf(old.journal, "own", own)).toMatchObject({ kind: "succeeded" });
    expect(kindsOf(old.events, "set aside")).toEqual([]);

    await journal.start();
    expect(await outcomeOf(journal, "theirs", id)).toEqual({ kind: "succeeded", result: "done" });
    await journal.stop();
  });

  test("works on its own while a lane has no room, and looks past what it cannot read there", async () => {
    const bare = memoryStore();
    const events: JournalEvent[] = [];
    const old = await openJournal({
      store: await opened(bare, "a"),
      kinds,
      observe: (event) => void events.push(event),
    });
    old.pauseLanes(new Set(["full"]));
    const inLanes = (lane: string) => ({ kind: "work", mode: "shared", lane }) as const;
    const both = { result: null, change: { accept: [inLanes("full"), inLanes("free")] } };
    const theirs = await openJournal({ store: await opened(bare, "b", "a"), kinds });
    await theirs.transact("a theirs", () => both, { by });
    await old.start();
    const own = await accept(old, "own", inLanes("free"));
    expect(await outcomeOf(old, "own", own)).toMatchObject({ kind: "succeeded" });
    const { accepted } = await old.transact("own too", () => both, { by });
    expect(await outcomeOf(old, "own too", accepted[1]?.id ?? "")).toMatchObject({ kind: "succeeded" });
    expect(kindsOf(events, "store failed")).toEqual([]);
    expect((await bare.read("a theirs", []))?.record).toMatchObject({ lease: null, lane: "full" });
    await old.stop();
  });

  test("does not claim what it cannot read together with what it can", async () => {
    const bare = memoryStore({ clock: () => 5_000 });
    const [old, theirs] = [await opened(bare, "a"), await opened(bare, "b", "a")];
    await theirs.commit(change("theirs", null, { dueAt: 1 }));
    await old.commit(change("own", null, { dueAt: 2 }));
    const request = { owner: "o", leaseMs: 30_000, limit: 9, laneRoom: 9, rooms: new Map() };
    const answer = await old.claim(request);
    expect(answer.claimed.map(({ key }) => key)).toEqual(["own"]);
    expect(answer.nextDueAt).toBe(6_000);
    expect((await bare.read("theirs", []))?.record).toMatchObject({ lease: null, dueAt: 6_000 });
  });
});

describe.skipIf(postgresUrl === null)("processes on one PostgreSQL database", () => {
  const openAll = (place: PostgresPlace, rings: readonly string[]) =>
    Promise.allSettled(
      rings.map(async (id) => {
        const store = encryptedStore(postgresStore(place.newPool(), { schema: place.schema }), ringOf(id));
        await store.open();
        place.atEnd(() => store.close());
        return store;
      }),
    );
  const refusals = (ends: readonly PromiseSettledResult<Store>[]) =>
    ends.flatMap((end) => (end.status === "rejected" ? [(end.reason as { code: string }).code] : []));

  test("that open it at once for the first time all succeed with one ring", () =>
    PostgresPlace.use(async (place) => {
      const ends = await openAll(place, ["a", "a", "a", "a"]);
      expect(refusals(ends)).toEqual([]);
      const stores = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
      await Promise.all(stores.map((store, index) => store.commit(change(`k${index}`, null, rich))));
      for (const store of stores) {
        const found = await store.find({ after: null, limit: 9 });
        expect(found.map(({ key, state }) => [key, state])).toEqual(
          stores.map((_, index) => [`k${index}`, rich.state]),
        );
      }
    }));

  test("that open it at once with different keys: the first one's count, the others are refused", () =>
    PostgresPlace.use(async (place) => {
      const rings = ["a", "b", "a'", "b'"];
      expect(refusals(await openAll(place, rings))).toHaveLength(3);
    }));
});

test("a journal without keys that runs on while another process begins to encrypt sets nothing aside", async () => {
  const bare = memoryStore();
  const plain = await startJournal({ store: bare, kinds });
  const journal = await openJournal({ store: await opened(bare, "a"), kinds });
  const id = await accept(journal, "k", { kind: "work" });
  await until("it is told", () =>
    kindsOf(plain.events, "store failed").some(
      (event) => "error" in event && String(event.error).includes("encrypted"),
    ),
  );
  expect(kindsOf(plain.events, "set aside")).toEqual([]);
  await plain.journal.stop();
  await journal.start();
  expect(await outcomeOf(journal, "k", id)).toEqual({ kind: "succeeded", result: "done" });
  await journal.stop();
});

import { describe, expect, test } from "vitest";
import type { Json } from "../src/json.js";
import type { Decision, ResourceChange } from "../src/resource.js";
import { sqliteStore } from "../src/stores/sqlite/index.js";
import { accept, by, outcomeOf, outcomeWithin, settle, startInMemory, startJournal } from "./faults-fixture.js";
import { databasePath } from "./sqlite-fixture.js";

const kinds = { work: { run: async () => "done" } };

const cyclic: Record<string, unknown> = {};
cyclic.self = cyclic;

const unkeepable: readonly (readonly [string, unknown, string])[] = [
  ["a BigInt", 10n, "not-serialisable"],
  ["a cycle", cyclic, "not-serialisable"],
  ["a function", () => undefined, "not-serialisable"],
  ["a symbol", Symbol("s"), "not-serialisable"],
  ["2 MiB", "x".repeat(2 * 1_048_576), "too-large"],
];

describe("values that cannot be kept", () => {
  const places: readonly (readonly [string, (value: Json) => ResourceChange])[] = [
    ["an input", (input) => ({ accept: [{ kind: "work", input }] })],
    ["the data", (data) => ({ data })],
    ["a part", (part) => ({ parts: { p1: part } })],
    ["an entry", (payload) => ({ entries: [{ kind: "noted", payload }] })],
  ];
  const nested: readonly (readonly [string, (value: Json) => ResourceChange])[] = [
    ...places,
    ["something inside the data", (value) => ({ data: { deep: [value] } })],
  ];
  const cases = nested.flatMap(([where, change]) =>
    unkeepable.map(([what, value, code]) => [what, where, change, value as Json, code] as const),
  );

  test.each(cases)("%s as %s: the caller is told, and nothing changed", async (what, where, change, value, code) => {
    // JSON leaves functions and symbols inside arrays out as null: that is kept as such.
    const lenient = where.startsWith("something inside") && (what === "a function" || what === "a symbol");
    const bench = await startInMemory({ kinds });
    const { journal } = bench;
    await journal.transact("r1", () => ({ result: null, change: { data: "before", labels: { a: "b" } } }), { by });
    const before = await journal.read("r1");
    const asked = journal.transact("r1", () => ({ result: null, change: change(value) }), { by });
    if (lenient) return void (await asked);
    await expect(asked).rejects.toMatchObject({ name: "JournalError", code });
    expect(await journal.read("r1", ["p1"])).toEqual(before);
    expect(journal.running).toBe(0);
    const id = await accept(journal, "r1", { kind: "work" });
    expect(await outcomeWithin(bench, "r1", id, 1_000)).toMatchObject({ kind: "succeeded" });
  });

  test.each(places)("10,000 levels deep as %s: kept, or refused with a sentence; on SQLite, too", async (_, change) => {
    let deep: Json = [];
    for (let level = 0; level < 10_000; level++) deep = [deep];
    const { journal } = await startJournal({ store: sqliteStore(await databasePath()), kinds });
    await journal
      .transact("r1", () => ({ result: null, change: change(deep) }), { by })
      .catch((error: unknown) => expect(error).toMatchObject({ name: "JournalError", code: "not-serialisable" }));
    const id = await accept(journal, "r2", { kind: "work" });
    expect(await outcomeOf(journal, "r2", id)).toMatchObject({ kind: "succeeded" });
  });

  test("who asks that cannot be kept is refused, too", async () => {
    const { journal } = await startInMemory({ kinds });
    const claims = cyclic as Json;
    const odd = { actor: { type: "user", subject: "odd", claims } } as const;
    const asked = journal.transact("r1", () => ({ result: null, change: { data: 1 } }), { by: odd });
    await expect(asked).rejects.toMatchObject({ code: "not-serialisable" });
    expect(await journal.read("r1")).toBeUndefined();
  });
});

describe("numbers that are none", () => {
  const numbers = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1, 0.5, 2 ** 60];

  test.each(numbers)(
    "delayMs %d: refused with a sentence, or the operation keeps a time at which someone looks",
    async (delayMs) => {
      const { journal, store } = await startInMemory({ kinds });
      const id = await accept(journal, "r1", { kind: "work", delayMs }).catch((error: unknown) => {
        expect(error).toMatchObject({ name: "JournalError", code: "invalid-change" });
        return undefined;
      });
      if (id === undefined) return;
      await settle();
      const record = (await store.read("r1", []))?.record;
      const status = await journal.operation("r1", id);
      expect(status?.status === "succeeded" || Number.isSafeInteger(record?.dueAt), `due ${record?.dueAt}`).toBe(true);
    },
  );

  test.each(numbers)("deadlineMs %d: refused with a sentence, or kept as a whole number", async (deadlineMs) => {
    const { journal } = await startInMemory({ kinds });
    const id = await accept(journal, "r1", { kind: "work", deadlineMs, held: true }).catch((error: unknown) => {
      expect(error).toMatchObject({ name: "JournalError", code: "invalid-change" });
      return undefined;
    });
    if (id === undefined) return;
    const open = (await journal.operation("r1", id))?.open;
    // No deadline is what an infinite one is.
    const kept =
      Number.isSafeInteger(open?.deadlineAt) || (deadlineMs === Number.POSITIVE_INFINITY && open?.deadlineAt === null);
    expect(open === null || kept, `deadline at ${open?.deadlineAt}`).toBe(true);
  });

  test("a delay of half a millisecond is kept by SQLite", async () => {
    const { journal } = await startJournal({ store: sqliteStore(await databasePath()), kinds });
    const id = await accept(journal, "r1", { kind: "work", delayMs: 0.5, deadlineMs: 1_000_000.5 });
    expect(await outcomeOf(journal, "r1", id)).toMatchObject({ kind: "succeeded" });
  });
});

describe("a decision", () => {
  test("that throws: its caller gets that very error, nothing changed, and the next one is not held up", async () => {
    const bench = await startInMemory({ kinds });
    const { journal } = bench;
    const mine = new Error("I cannot decide");
    const asked = journal.transact("r1", () => throwing(mine), { by });
    await expect(asked).rejects.toBe(mine);
    expect(await journal.read("r1")).toBeUndefined();
    const id = await accept(journal, "r1", { kind: "work" });
    expect(await outcomeWithin(bench, "r1", id, 1_000)).toMatchObject({ kind: "succeeded" });
    for (const thrown of [undefined, null, "words"]) {
      const odd = await journal
        .transact("r1", () => throwing(thrown), { by })
        .then(
          () => "resolved",
          (error: unknown) => ({ error }),
        );
      expect(odd).toEqual({ error: thrown });
    }
    expect(journal.running).toBe(0);
  });

  test("that throws while its resource runs leaves what runs alone", async () => {
    const bench = await startInMemory({ kinds: { work: { run: async (operation) => operation.sleep("nap", 1_000) } } });
    const id = await accept(bench.journal, "r1", { kind: "work" });
    await expect(bench.journal.transact("r1", () => throwing(new Error("no")), { by })).rejects.toThrow("no");
    expect(await outcomeWithin(bench, "r1", id, 5_000)).toMatchObject({ kind: "succeeded" });
  });

  test("that sets the data to null does so", async () => {
    const { journal } = await startInMemory({ kinds });
    await journal.transact("r1", () => ({ result: null, change: { data: { some: "thing" } } }), { by });
    await journal.transact("r1", () => ({ result: null, change: { data: null } }), { by });
    expect((await journal.read("r1"))?.data).toBeNull();
  });

  test("keeps what it was given, whatever its caller does to the object later", async () => {
    const bench = await startInMemory({
      kinds: { work: { run: async (operation) => operation.sleep("nap", 60_000) } },
    });
    const { journal } = bench;
    const data = { list: ["first"] };
    const change = { data, accept: [{ kind: "work" }] };
    await journal.transact("r1", () => ({ result: null, change }), { by });
    data.list.push("later");
    await journal.transact("r1", () => ({ result: null, change: { labels: { a: "b" } } }), { by });
    expect((await journal.read("r1"))?.data).toEqual({ list: ["first"] });
  });

  test("that is a promise by mistake is refused, not taken for one that changes nothing", async () => {
    const { journal } = await startInMemory({ kinds });
    const decide = (async () => ({ result: 1, change: { data: 1 } })) as unknown as () => Decision<number>;
    await expect(journal.transact("r1", decide, { by })).rejects.toThrow();
  });

  test("that answers nothing at all is refused with a sentence", async () => {
    const { journal } = await startInMemory({ kinds });
    const decide = (() => undefined) as unknown as () => Decision<number>;
    await expect(journal.transact("r1", decide, { by })).rejects.toBeInstanceOf(Error);
    await expect(accept(journal, "r1", { kind: "work" })).resolves.toEqual(expect.any(String));
  });
});

test("what a kind makes of an operation's end, if it throws or cannot be kept, fails the operation and nothing else", async () => {
  for (const settleBadly of [
    () => throwing(new Error("the fold is broken")),
    () => ({ data: 10n as unknown as Json }),
    () => ({ parts: { "osbert.queue/1": 1 } }),
    () => ({ accept: [{ kind: "no such kind" }] }),
    () => throwing(undefined),
  ]) {
    const bench = await startInMemory({
      kinds: { work: { run: async () => "done", settle: settleBadly as () => ResourceChange } },
    });
    const id = await accept(bench.journal, "r1", { kind: "work" });
    const outcome = await outcomeWithin(bench, "r1", id, 1_000);
    expect(outcome).toMatchObject({ kind: "failed", error: { class: "unkeepable" } });
    await settle();
    expect(bench.journal.running).toBe(0);
  }
});

function throwing(error: unknown): never {
  throw error;
}

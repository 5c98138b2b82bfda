import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Operation } from "../src/engine/operation-kind.js";
import { JournalError, RetryLater } from "../src/errors.js";
import type { Journal } from "../src/journal.js";
import { openJournal } from "../src/open-journal.js";
import type { Change, Store } from "../src/store.js";
import { memoryStore } from "../src/stores/memory.js";
import { faultyStore, interposedStore, manualClock } from "../src/testing/index.js";
import { accept, by, kindsOf, Latch, settle, startJournal, until } from "./faults-fixture.js";

/** Runs until it is told to stop, or may end. */
function longRunning() {
  const mayEnd = new Latch();
  const told: string[] = [];
  const run = async ({ signal }: Operation) => {
    signal.addEventListener("abort", () => told.push((signal.reason as Error).message));
    await mayEnd.opened;
    return "done";
  };
  return { run, told, mayEnd };
}

/** A store that several engines share, and one of them reaches it over a connection that loses answers. */
function sharedStore() {
  const clock = manualClock();
  const shared = memoryStore({ clock: clock.wallMs });
  return { clock, shared, store: faultyStore(shared) };
}

const everyMs = 5_000;

function pollUntil(look: () => string | undefined) {
  return (operation: Operation) => operation.poll("answer", look, { everyMs });
}

/** The answer to the first commit without an entry is lost, and something else happens before it is asked for again. */
function onceQuiet(store: Store, meanwhile: () => Promise<void>): Store {
  let isOver = false;
  return interposedStore(store, async ({ method, args }, go) => {
    const answer = await go();
    if (isOver || method !== "commit" || (args[0] as Change).entries.length > 0) return answer;
    isOver = true;
    await meanwhile();
    throw new JournalError("store-unavailable", "the connection broke before the store answered");
  });
}

async function looksOf(journal: Journal, key: string): Promise<number | undefined> {
  return (await journal.read(key))?.open[0]?.polls?.[0]?.[2];
}

describe("an engine that has not heard what became of its own doing does not take itself for dead", () => {
  test("a resource that it gave back is another's when it looks", async () => {
    const { clock, shared, store } = sharedStore();
    const long = longRunning();
    let attempts = 0;
    const later = async () => {
      if (++attempts === 1) throw new RetryLater("not yet", { afterMs: 5 });
      await long.mayEnd.opened;
    };
    const kinds = { long: { run: long.run }, later: { run: later } };
    const one = await startJournal({ store, clock, kinds, random: () => 1 });
    await accept(one.journal, "r1", { kind: "long" });
    const delayed = await accept(one.journal, "r2", { kind: "later", delayMs: 1_000 });
    await clock.advance(999);
    const other = await startJournal({ store: shared, clock, kinds, random: () => 1 });
    // The second engine must not be the one that takes it first.
    other.journal.pauseLanes(new Set(["later"]));
    store.next("commit", "answer lost");
    await clock.advance(1);
    expect(attempts).toBe(1);
    other.journal.pauseLanes(new Set());
    one.journal.pauseLanes(new Set(["later"]));
    await clock.advance(1_000);
    expect(attempts).toBe(2);
    expect((await one.journal.operation("r2", delayed))?.status).toBe("open");
    expect(kindsOf(one.events, "presence lost")).toEqual([]);
    expect(long.told).toEqual([]);
  });

  test("a resource that it gave back with a look that saw nothing is another's when it looks", async () => {
    const { clock, shared, store } = sharedStore();
    const long = longRunning();
    const kinds = { long: { run: long.run }, poll: { run: pollUntil(() => undefined) } };
    const one = await startJournal({ store: onceQuiet(store, takeOver), clock, kinds, random: () => 1 });
    const other = await openJournal({ store: shared, clock, kinds, random: () => 1 });
    onTestFinished(() => other.kill().catch(() => undefined));
    /** The answer is lost, and the other engine has looked when it is asked for again. */
    async function takeOver() {
      one.journal.pauseLanes(new Set(["poll"]));
      await other.start();
      await clock.advance(everyMs);
      await until("the other has looked", async () => (await looksOf(other, "r2")) === 2);
    }
    await accept(one.journal, "r1", { kind: "long" });
    await accept(one.journal, "r2", { kind: "poll" });
    await until("it hears of the lost answer", () => kindsOf(one.events, "store failed").length === 1);
    await clock.advance(1_000);
    expect(await looksOf(other, "r2")).toBe(2);
    expect([...kindsOf(one.events, "presence lost"), ...kindsOf(one.events, "lease lost")]).toEqual([]);
    expect(long.told).toEqual([]);
  });

  test("a look that saw nothing, beside what runs, is recorded once, and who hurries it is heard", async () => {
    const { clock, shared, store } = sharedStore();
    const long = longRunning();
    const mode = "shared" as const;
    let isThere = false;
    const poll = { run: pollUntil(() => (isThere ? "seen" : undefined)), mode };
    const kinds = { long: { run: long.run, mode }, poll };
    const other = await openJournal({ store: shared, clock, kinds });
    onTestFinished(() => other.kill().catch(() => undefined));
    let id = "";
    const hurry = async () => {
      isThere = true;
      await other.transact("r1", () => ({ result: null, change: { hurry: [id] } }), { by });
    };
    const one = await startJournal({ store: onceQuiet(store, hurry), clock, kinds, random: () => 1 });
    await accept(one.journal, "r1", { kind: "long" });
    id = await accept(one.journal, "r1", { kind: "poll" });
    await clock.advance(everyMs / 2);
    const status = await one.journal.operation("r1", id);
    expect(status?.outcome).toEqual({ kind: "succeeded", result: "seen" });
    expect(kindsOf(one.events, "presence lost")).toEqual([]);
    expect(long.told).toEqual([]);
  });

  test("a resource that it removed is not there when it looks", async () => {
    const { clock, store } = sharedStore();
    const long = longRunning();
    const retention = { succeededMs: 60_000, failedMs: 60_000, cancelledMs: 60_000, notesMs: 60_000 };
    const kinds = { long: { run: long.run }, end: { run: async () => 1, settle: () => ({ gone: true }) } };
    const { journal, events } = await startJournal({ store, clock, kinds, retention, random: () => 1 });
    await accept(journal, "r1", { kind: "long" });
    await accept(journal, "r2", { kind: "end" });
    await settle();
    store.next("remove", "answer lost");
    await clock.advance(180_000);
    expect(await journal.read("r2")).toBeUndefined();
    expect(store.calls.filter(({ method }) => method === "remove").length).toBeGreaterThan(0);
    expect(kindsOf(events, "presence lost")).toEqual([]);
    expect(long.told).toEqual([]);
  });
});

test("what runs hears of its cancellation, although the answer that told of it was lost", async () => {
  const { clock, shared, store } = sharedStore();
  const long = longRunning();
  const kinds = { long: { run: long.run } };
  const { journal } = await startJournal({ store, clock, kinds, random: () => 1 });
  const id = await accept(journal, "r1", { kind: "long" });
  await settle();
  const other = await openJournal({ store: shared, clock, kinds });
  store.next("claim", "answer lost");
  expect(await other.cancel("r1", id, "not wanted any more", by)).toBe(true);
  await clock.advance(5_000);
  expect(long.told).toEqual(["not wanted any more"]);
});

test("a lease that is given back late, after a claim has found it again, is given back for that claim, too", async () => {
  const { clock, shared, store } = sharedStore();
  const pace = { leaseMs: 30_000, pollMs: 1_000, reapMs: null };
  const first = new Latch();
  const second = new Latch();
  let running = 0;
  const kinds = {
    first: { run: () => first.opened },
    second: {
      run: async () => {
        running++;
        await second.opened;
      },
    },
  };
  const one = await startJournal({ store: { ...store, pace }, clock, kinds });
  one.journal.pauseLanes(new Set(["second"]));
  await accept(one.journal, "r1", { kind: "first" });
  const id = await accept(one.journal, "r1", { kind: "second" });
  store.next("release", "hangs");
  first.open();
  await settle();
  const other = await startJournal({ store: { ...faultyStore(shared), pace }, clock, kinds });
  await accept(other.journal, "r1", { kind: "first" });
  one.journal.pauseLanes(new Set());
  await settle();
  expect(store.calls.findLast(({ method }) => method === "release")?.fault).toBe("hangs");
  store.comeBack();
  await clock.advance(10_000);
  expect(running).toBe(1);
  expect(kindsOf(one.events, "presence lost")).toEqual([]);
  second.open();
  await clock.advance(10_000);
  expect((await one.journal.operation("r1", id))?.outcome).toMatchObject({ kind: "succeeded" });
});

test("what reads a queue page by page, while another process works on it, ends each of its operations once", async () => {
  const shared = memoryStore();
  let ran = 0;
  let mayRun = 0;
  const run = async ({ signal }: Operation) => {
    while (mayRun <= ran && !signal.aborted) await sleep(1);
    ran++;
  };
  const kinds = { work: { run } };
  const one = await startJournal({ store: shared, kinds });
  const accepted = Array.from({ length: 200 }, () => ({ kind: "work" }));
  for (let n = 0; n < 3; n++)
    await one.journal.transact("r1", () => ({ result: null, change: { accept: accepted } }), { by });
  // Between the pages of the other one, this one moves the queue on, and then stands still.
  let pages = 0;
  const slow = interposedStore(shared, async ({ method }, go) => {
    const answer = await go();
    if (method !== "parts" || pages++ >= 10) return answer;
    mayRun += 20;
    await until("the queue moves on", () => ran >= mayRun);
    await settle();
    return answer;
  });
  const other = await openJournal({ store: slow, kinds });
  onTestFinished(() => other.kill().catch(() => undefined));
  const drop = { cancel: { others: true, reason: "deleted" } } as const;
  await other.transact("r1", () => ({ result: null, change: drop }), { by });
  await until("nothing is open", async () => (await one.journal.read("r1"))?.open.length === 0);
  const settled: string[] = [];
  for (let after = 0; ; ) {
    const page = await one.journal.entries("r1", { after, limit: 500 });
    for (const { kind, operation } of page) if (kind === "settled") settled.push(operation ?? "");
    after = page.at(-1)?.seq ?? after;
    if (page.length < 500) break;
  }
  expect(settled).toHaveLength(600);
  expect(new Set(settled).size).toBe(600);
  expect((await one.journal.read("r1"))?.queued).toBe(0);
});

test("two operations that change each other's resource do not wait for each other for ever", async () => {
  // A store that takes its time: leases have to be confirmed between the steps.
  const store = interposedStore(memoryStore(), async (_call, go) => {
    await sleep(200);
    const answer = await go();
    await sleep(200);
    return answer;
  });
  const hit = { result: null, change: { entries: [{ kind: "hit", payload: null }] } };
  const cross = {
    run: async (operation: Operation) => {
      for (let n = 0; n < 5; n++) await operation.transact(`hit ${n}`, String(operation.input), () => hit);
    },
  };
  const { journal } = await startJournal({ store, kinds: { cross } });
  const [a, b] = await Promise.all([
    accept(journal, "a", { kind: "cross", input: "b" }),
    accept(journal, "b", { kind: "cross", input: "a" }),
  ]);
  const ended = async (key: string, id: string) => (await journal.operation(key, id))?.outcome ?? undefined;
  expect(await until("the one ends", () => ended("a", a), 50_000)).toMatchObject({ kind: "succeeded" });
  expect(await until("the other ends", () => ended("b", b), 50_000)).toMatchObject({ kind: "succeeded" });
}, 60_000);

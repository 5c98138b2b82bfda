import { describe, expect, test } from "vitest";
import type { Operation } from "../src/engine/attempt.js";
import { RetryLater } from "../src/errors.js";
import { openJournal } from "../src/journal.js";
import { memoryStore } from "../src/stores/memory.js";
import { faultyStore, manualClock } from "../src/testing/index.js";
import { accept, by, kindsOf, Latch, settle, startJournal } from "./faults-fixture.js";

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

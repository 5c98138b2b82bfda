import { describe, expect, test } from "vitest";
import type { Operation } from "../src/engine/operation-kind.js";
import { JournalError } from "../src/errors.js";
import type { Store } from "../src/store.js";
import { memoryStore } from "../src/stores/memory.js";
import { interposedStore, manualClock, type StoreCall } from "../src/testing/index.js";
import { accept, kindsOf, Latch, settle, startJournal } from "./faults-fixture.js";

/** A store that answers, and refuses some calls for a reason that repeating does not mend: a missing grant, a broken trigger. */
class RefusingStore {
  readonly clock = manualClock();
  readonly store: Store;
  refuses: (call: StoreCall) => boolean = () => false;
  refused = 0;

  constructor() {
    this.store = interposedStore(memoryStore({ clock: this.clock.wallMs }), async (call, go) => {
      if (!this.refuses(call)) return go();
      this.refused++;
      throw Object.assign(new Error("permission denied for table entry"), { code: "42501" });
    });
  }
}

/** Commits with an entry of one of these kinds. */
function writing(...kinds: readonly string[]): (call: StoreCall) => boolean {
  return ({ method, args }) => {
    if (method !== "commit") return false;
    const { entries } = args[0] as { readonly entries: readonly { readonly kind: string }[] };
    return entries.some(({ kind }) => kinds.includes(kind));
  };
}

describe("a store that answers and refuses", () => {
  const refusals: [string, (call: StoreCall) => boolean][] = [
    ["the result of a step", writing("step", "settled", "retry")],
    ["all that a runner writes, and its lease back", (call) => writing("step", "retry")(call) || isRelease(call)],
  ];
  test.each(refusals)("%s: the step has its effect again only after pauses that grow", async (_, refuses) => {
    const refusing = new RefusingStore();
    const { store, clock } = refusing;
    let effects = 0;
    const run = (operation: Operation) => operation.step("charge", () => ++effects);
    const { journal, events } = await startJournal({ store, clock, kinds: { work: { run } }, random: () => 1 });
    refusing.refuses = refuses;
    const id = await accept(journal, "r1", { kind: "work" });
    await settle();
    expect(effects).toBe(1);
    await clock.advance(120_000);
    // After 0.5, 1, 2, 4 … 60 seconds, or when leases have run out.
    expect(effects).toBeGreaterThan(2);
    expect(effects).toBeLessThan(10);
    expect(kindsOf(events, "store failed").length).toBeGreaterThan(0);
    refusing.refuses = () => false;
    await clock.advance(120_000);
    expect((await journal.operation("r1", id))?.outcome).toMatchObject({ kind: "succeeded" });
  });

  test("what an attempt begins with cannot be read: it is tried again after pauses that grow", async () => {
    const refusing = new RefusingStore();
    const { store, clock } = refusing;
    const { journal } = await startJournal({ store, clock, kinds: { work: { run: async () => 1 } }, random: () => 1 });
    const id = await accept(journal, "r1", { kind: "work", delayMs: 1_000 });
    refusing.refuses = ({ method }) => method === "entries";
    await clock.advance(60_000);
    expect(refusing.refused).toBeGreaterThan(2);
    expect(refusing.refused).toBeLessThan(10);
    refusing.refuses = () => false;
    await clock.advance(60_000);
    expect((await journal.operation("r1", id))?.outcome).toMatchObject({ kind: "succeeded" });
  });

  test("an attempt ends with a step that could not be recorded, also if its author caught that", async () => {
    const refusing = new RefusingStore();
    const { store, clock } = refusing;
    const begun: string[] = [];
    const run = async (operation: Operation) => {
      await operation.step("one", () => begun.push("one")).catch(() => undefined);
      await operation.step("two", () => begun.push("two")).catch(() => undefined);
      return "done";
    };
    const { journal } = await startJournal({ store, clock, kinds: { work: { run } }, random: () => 1 });
    refusing.refuses = writing("step");
    const id = await accept(journal, "r1", { kind: "work" });
    await settle();
    expect(begun).toEqual(["one"]);
    expect((await journal.operation("r1", id))?.open).toMatchObject({ failures: 1, steps: [] });
    refusing.refuses = () => false;
    await clock.advance(1_000);
    expect((await journal.operation("r1", id))?.outcome).toMatchObject({ kind: "succeeded" });
    expect(begun).toEqual(["one", "one", "two"]);
  });

  test("an engine that may not come back under a new name tries again, and runs what is due then", async () => {
    const refusing = new RefusingStore();
    const { clock } = refusing;
    let lose = (): void => undefined;
    const store = interposedStore(refusing.store, (call, go) => {
      if (call.method === "attend") lose = call.args[1] as () => void;
      return go();
    });
    const { journal, events } = await startJournal({ store, clock, kinds: { work: { run: async () => 1 } } });
    refusing.refuses = ({ method }) => method === "attend";
    lose();
    await clock.advance(10_000);
    expect(refusing.refused).toBeGreaterThan(1);
    expect(refusing.refused).toBeLessThan(20);
    expect(kindsOf(events, "store failed").length).toBeGreaterThan(0);
    const id = await accept(journal, "r1", { kind: "work" });
    refusing.refuses = () => false;
    await clock.advance(120_000);
    expect((await journal.operation("r1", id))?.outcome).toMatchObject({ kind: "succeeded" });
  });

  test("an engine that is lost sight of whenever it has come back repeats a step's effect only after pauses that grow", async () => {
    const { clock, store: base } = new RefusingStore();
    let loses = true;
    const store = interposedStore(base, async (call, go) => {
      const answer = await go();
      if (call.method === "attend" && loses) {
        const [owner, lost] = call.args as [string, () => void];
        clock.after(50, () => {
          lost();
          // Its session is gone: others, and the engine itself under its next name, may take what it held.
          void base.leave(owner);
        });
      }
      return answer;
    });
    let effects = 0;
    const run = (operation: Operation) =>
      operation.step("charge", () => new Promise<number>((done) => clock.after(100, () => done(++effects))));
    const { journal } = await startJournal({ store, clock, kinds: { work: { run } }, random: () => 1 });
    const id = await accept(journal, "r1", { kind: "work" });
    await clock.advance(60_000);
    expect(effects).toBeGreaterThan(2);
    expect(effects).toBeLessThan(15);
    loses = false;
    await clock.advance(60_000);
    expect((await journal.operation("r1", id))?.outcome).toMatchObject({ kind: "succeeded" });
  });
});

describe("a store that is slow", () => {
  test("a lease that is over whenever the store's answer comes is not asked for without end", async () => {
    const clock = manualClock();
    const leaseMs = 1_000;
    let renewing: "as usual" | "refused" | "slow" = "as usual";
    let renewals = 0;
    const store = interposedStore(memoryStore({ clock: clock.wallMs }), async (call, go) => {
      if (call.method !== "renew" || renewing === "as usual") return go();
      if (renewing === "refused") throw new JournalError("store-unavailable");
      renewals++;
      await clock.advance(leaseMs);
      return go();
    });
    const latch = new Latch();
    let effects = 0;
    const run = async (operation: Operation) => {
      await latch.opened;
      await operation.step("one", () => ++effects);
    };
    const { journal } = await startJournal({ store, clock, kinds: { work: { run } }, leaseMs });
    await accept(journal, "r1", { kind: "work" });
    await settle();
    renewing = "refused";
    await clock.advance(900);
    renewing = "slow";
    latch.open();
    await settle();
    expect([effects, renewals > 0, renewals < 20]).toEqual([0, true, true]);
    renewing = "as usual";
  });

  test("a change whose turn comes after its caller has stopped waiting is not made", async () => {
    const clock = manualClock();
    let held: (() => void) | undefined;
    const store = interposedStore(memoryStore({ clock: clock.wallMs }), async (call, go) => {
      if (call.method === "commit" && held === undefined)
        await new Promise<void>((resolve) => {
          held = resolve;
        });
      return go();
    });
    const { journal } = await startJournal({ store, clock, kinds: { work: { run: async () => 1 } } });
    const heard = (asked: Promise<unknown>) => asked.then(() => "made").catch((error: { code: string }) => error.code);
    const first = heard(accept(journal, "r1", { kind: "work" }, { timeoutMs: 60_000 }));
    const second = heard(accept(journal, "r1", { kind: "work" }, { timeoutMs: 1_000 }));
    await clock.advance(2_000);
    expect(await second).toBe("store-unavailable");
    held?.();
    expect(await first).toBe("made");
    await settle();
    expect((await journal.entries("r1")).filter(({ kind }) => kind === "accepted")).toHaveLength(1);
  });
});

test("an engine that loses its name while it looks for leases of its own claims nothing without a name", async () => {
  const clock = manualClock();
  let lose = (): void => undefined;
  const owners: unknown[] = [];
  let failing = true;
  const store = interposedStore(memoryStore({ clock: clock.wallMs }), async (call, go) => {
    if (call.method === "attend") {
      lose = call.args[1] as () => void;
      // A new name takes its time.
      if (owners.length > 0) await settle();
    }
    if (call.method === "heldBy") lose();
    const answer = await go();
    if (call.method !== "claim") return answer;
    owners.push((call.args[0] as { owner: unknown }).owner);
    if (!failing) return answer;
    failing = false;
    throw new JournalError("store-unavailable");
  });
  const { journal } = await startJournal({ store, clock, kinds: { work: { run: async () => 1 } } });
  const id = await accept(journal, "r1", { kind: "work", delayMs: 1_000 });
  await clock.advance(60_000);
  expect((await journal.operation("r1", id))?.outcome).toMatchObject({ kind: "succeeded" });
  expect(owners.filter((owner) => typeof owner !== "string")).toEqual([]);
});

test("giving a resource back because there is no room is not taken for a runner that was lost", async () => {
  const clock = manualClock();
  let taken = 0;
  let journal: Awaited<ReturnType<typeof startJournal>>["journal"] | undefined;
  const ends: (() => void)[] = [];
  // Each time that the waiting one has been claimed, another is accepted before the answer is here, and takes the only place.
  const store = interposedStore(memoryStore({ clock: clock.wallMs }), async (call, go) => {
    const answer = await go();
    const claimed = call.method === "claim" && (answer as { claimed: readonly unknown[] }).claimed.length > 0;
    if (claimed && taken < 15 && journal !== undefined) await accept(journal, `other ${taken++}`, { kind: "work" });
    return answer;
  });
  const run = ({ key }: Operation) => (key === "waits" ? "done" : new Promise<void>((resolve) => ends.push(resolve)));
  const kinds = { work: { run: async (operation: Operation) => run(operation), maxAttempts: 2 } };
  ({ journal } = await startJournal({ store, clock, kinds, concurrency: 1, laneConcurrency: 1 }));
  const id = await accept(journal, "waits", { kind: "work", delayMs: 1_000 });
  await clock.advance(1_000);
  for (let round = 0; round < 30; round++) {
    ends.shift()?.();
    await clock.advance(10);
  }
  expect(taken).toBe(15);
  await clock.advance(1_000);
  expect((await journal.operation("waits", id))?.outcome).toEqual({ kind: "succeeded", result: "done" });
  const kindsOfEntries = (await journal.entries("waits")).map(({ kind }) => kind);
  expect(kindsOfEntries.filter((kind) => kind === "retry")).toEqual([]);
});

function isRelease({ method }: StoreCall): boolean {
  return method === "release";
}

describe("effects that nobody waits for", () => {
  test("a step that took too long is told to stop before the next attempt begins it anew", async () => {
    const clock = manualClock();
    const signals: AbortSignal[] = [];
    const run = (operation: Operation) =>
      operation.step("slow", ({ signal }) => new Promise(() => signals.push(signal)), { timeoutMs: 1_000 });
    const store = memoryStore({ clock: clock.wallMs });
    const { journal } = await startJournal({ store, clock, kinds: { work: { run } }, random: () => 1 });
    await accept(journal, "r1", { kind: "work" });
    await settle();
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
    await clock.advance(2_000);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
  });

  test("a step under a lease that cannot be renewed is told to stop before others may take over", async () => {
    const clock = manualClock();
    const leaseMs = 30_000;
    let silent = false;
    const store = interposedStore(memoryStore({ clock: clock.wallMs }), (_, go) =>
      silent ? new Promise(() => undefined) : go(),
    );
    const told: number[] = [];
    const run = (operation: Operation) =>
      operation.step("slow", ({ signal }) => {
        signal.addEventListener("abort", () => told.push(clock.monotonicMs()));
        return new Promise(() => undefined);
      });
    const { journal } = await startJournal({ store, clock, kinds: { work: { run } }, leaseMs });
    await accept(journal, "r1", { kind: "work" });
    await settle();
    const from = clock.monotonicMs();
    silent = true;
    await clock.advance(2 * leaseMs);
    expect(told).toHaveLength(1);
    expect((told[0] ?? 0) - from).toBeLessThanOrEqual(leaseMs);
    silent = false;
  });

  test("a renewal that hangs does not keep the next one from coming", async () => {
    const clock = manualClock();
    let hangs = false;
    const store = interposedStore(memoryStore({ clock: clock.wallMs }), (call, go) => {
      if (!hangs || call.method !== "renew") return go();
      hangs = false;
      return new Promise(() => undefined);
    });
    let aborted = false;
    const run = (operation: Operation) =>
      operation.step("slow", ({ signal }) => {
        signal.addEventListener("abort", () => {
          aborted = true;
        });
        return new Promise(() => undefined);
      });
    const { journal } = await startJournal({ store, clock, kinds: { work: { run } } });
    await accept(journal, "r1", { kind: "work" });
    await settle();
    hangs = true;
    await clock.advance(300_000);
    expect(aborted).toBe(false);
  });
});

test("an idle engine whose store is away looks less and less often", async () => {
  const clock = manualClock();
  let looks = 0;
  const store = interposedStore(memoryStore({ clock: clock.wallMs }), async (call, go) => {
    if (call.method !== "claim" && call.method !== "heldBy") return go();
    looks++;
    throw new JournalError("store-unavailable");
  });
  await startJournal({ store, clock, kinds: { work: { run: async () => 1 } }, random: () => 1 });
  await clock.advance(60_000);
  // 50, 100, 200 … 2,000 ms.
  expect(looks).toBeLessThan(40);
});

import { expect, onTestFinished, test } from "vitest";
import { JournalError } from "../src/errors.js";
import type { Journal, JournalOptions } from "../src/journal.js";
import { laneLedgerKey } from "../src/names.js";
import type { JournalEvent } from "../src/observe.js";
import { openJournal } from "../src/open-journal.js";
import { stateOf } from "../src/state.js";
import type { Change, CommitOutcome, Store } from "../src/store.js";
import { memoryStore } from "../src/stores/memory.js";
import { type Interpose, interposedStore, type ManualClock, manualClock } from "../src/testing/index.js";
import { accept, by, settle } from "./faults-fixture.js";

const leaseMs = 30_000;

test("a process whose ledger hangs begins nothing in a share that has lapsed", async () => {
  const bench = new LaneBench();
  const a = await bench.process("a", { interpose: hanging(() => bench.isBroken) });
  const b = await bench.process("b");
  await bench.limit(a, 2);
  await a.start();
  await bench.pass(1_000);
  bench.isBroken = true;
  await b.start();
  await bench.pass(leaseMs * 2);
  for (let index = 0; index < 3; index++) await accept(b, `b${index}`, { kind: "job" });
  await bench.pass(1_000);
  expect(bench.running).toEqual(["b", "b"]);
  for (let index = 0; index < 3; index++) await accept(a, `a${index}`, { kind: "job" });
  await bench.pass(1_000);
  expect(bench.running).toEqual(["b", "b"]);
});

test("a call of the ledger that is never answered is given up, and the process has its share again", async () => {
  const bench = new LaneBench();
  const a = await bench.process("a", { interpose: hanging(() => bench.isBroken) });
  await bench.limit(a, 2);
  await a.start();
  await bench.pass(1_000);
  bench.isBroken = true;
  await bench.pass(leaseMs * 2);
  await accept(a, "a", { kind: "job" });
  await bench.pass(1_000);
  expect(bench.running).toEqual([]);
  bench.isBroken = false;
  await bench.pass(leaseMs);
  expect(bench.running).toEqual(["a"]);
});

test("an operation that got its place in time and is kept waiting begins no more once the share has lapsed", async () => {
  const bench = new LaneBench();
  let letGo = (): void => undefined;
  const isHeldUp = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const hangs = hanging(() => bench.isBroken);
  // What it needs to begin is read while the ledger hangs, and takes longer than the share lasts.
  const interpose: Interpose = async (call, go) => {
    if (bench.isBroken && call.method === "entries") await isHeldUp;
    return hangs(call, go);
  };
  const a = await bench.process("a", { interpose });
  const b = await bench.process("b");
  await bench.limit(a, 1);
  await a.start();
  await bench.pass(1_000);
  bench.isBroken = true;
  await accept(await bench.process("c"), "slow", { kind: "job" });
  await bench.pass(leaseMs);
  await b.start();
  await bench.pass(2_000);
  await accept(b, "b", { kind: "job" });
  await bench.pass(1_000);
  expect(bench.running).toEqual(["b"]);
  letGo();
  await bench.pass(1_000);
  expect(bench.running).toEqual(["b"]);
});

test("a place that was given up with an answer that got lost is not taken again", async () => {
  const bench = new LaneBench();
  let isLost = false;
  const interpose: Interpose = async ({ method, args }, go) => {
    if (method === "commit" && (args[0] as Change).key === laneLedgerKey && bench.isBroken && !isLost) {
      isLost = true;
      await go();
      throw new JournalError("store-unavailable", "the answer got lost");
    }
    // What was written cannot be read either.
    if (isLost && (method === "versions" || (method === "read" && args[0] === laneLedgerKey)))
      throw new JournalError("store-unavailable", "the store does not answer");
    return go();
  };
  // By their names, it is the turn of the first one to have the place.
  const a = await bench.process("a", { interpose, concurrency: 1, token: numbered("a") });
  const b = await bench.process("b", { token: numbered("b") });
  await bench.limit(a, 1);
  await a.start();
  await bench.pass(1_000);
  // It is full of other work, and leaves its place to the one that comes.
  await accept(a, "full", { kind: "other" });
  bench.isBroken = true;
  await b.start();
  await bench.pass(3_000);
  expect(isLost).toBe(true);
  await accept(b, "b", { kind: "job" });
  await bench.pass(1_000);
  expect(bench.running).toEqual(["b"]);
  // Now it has room again, and has not heard what became of its place.
  bench.finishOthers();
  await accept(a, "a", { kind: "job" });
  await bench.pass(5_000);
  expect(bench.running).toEqual(["b"]);
});

test("twenty processes that come at once share a lane with a few writes each, and none of them in vain for long", async () => {
  const bench = new LaneBench();
  const outcomes = { committed: 0, conflict: 0 };
  let failures = 0;
  const interpose: Interpose = async ({ method, args }, go) => {
    const key = method === "commit" ? (args[0] as Change).key : args[0];
    if (key !== laneLedgerKey) return go();
    // Each way takes a while: so others come in between.
    await bench.passed(2);
    const answer = await go();
    if (method === "commit") outcomes[(answer as CommitOutcome).kind]++;
    await bench.passed(2);
    return answer;
  };
  const observe = (event: JournalEvent) => {
    if (event.kind === "store failed") failures++;
  };
  const journals: Journal[] = [];
  for (let index = 0; index < 20; index++) {
    journals.push(await bench.process(`p${index}`, { interpose, observe, random: chance(index + 1) }));
  }
  await bench.limit(journals[0] as Journal, 64);
  await Promise.all(journals.map((journal) => journal.start()));
  await bench.pass(5_000);
  expect(Object.values(await bench.shares()).sort((a, b) => a - b)).toEqual([
    ...Array(16).fill(3),
    ...Array(4).fill(4),
  ]);
  expect(failures).toBe(0);
  expect(outcomes.committed).toBeLessThan(20 * 6);
  expect(outcomes.conflict).toBeLessThan(20 * 12);
  // Once they have settled, each of them says now and then that it lives.
  outcomes.committed = outcomes.conflict = 0;
  await bench.pass(leaseMs);
  expect(outcomes.committed).toBeLessThanOrEqual(20 * 5);
  expect(outcomes.conflict).toBeLessThan(20);
});

test("a process that is taken for gone and lives keeps its places, as soon as it has said so", async () => {
  const bench = new LaneBench();
  let asked = 0;
  const a = await bench.process("a");
  await bench.limit(a, 2);
  await a.start();
  await bench.pass(1_000);
  const b = await bench.process("b", { interpose: takingForGone(() => asked++ < 3), reapMs: 1_000 });
  await b.start();
  for (let index = 0; index < 2; index++) await accept(a, `a${index}`, { kind: "job" });
  await bench.pass(10_000);
  expect(asked).toBeGreaterThan(3);
  const [running] = [bench.running.length];
  for (let index = 0; index < 3; index++) await accept(b, `b${index}`, { kind: "job" });
  await bench.pass(leaseMs * 2);
  expect(running).toBe(2);
  expect(bench.running).toHaveLength(2);
});

test("a process that is taken for gone, and cannot hear of it, begins nothing in the places that others have now", async () => {
  const bench = new LaneBench();
  const a = await bench.process("a", { interpose: hanging(() => bench.isBroken) });
  await bench.limit(a, 2);
  await a.start();
  await bench.pass(5_000);
  bench.isBroken = true;
  const b = await bench.process("b", { interpose: takingForGone(() => bench.isBroken), reapMs: 1_000 });
  await b.start();
  await bench.pass(leaseMs / 6);
  for (let index = 0; index < 3; index++) await accept(b, `b${index}`, { kind: "job" });
  await bench.pass(1_000);
  expect(bench.running).toEqual(["b", "b"]);
  for (let index = 0; index < 3; index++) await accept(a, `a${index}`, { kind: "job" });
  await bench.pass(leaseMs / 6);
  expect(bench.running).toEqual(["b", "b"]);
});

interface ProcessOptions extends Partial<JournalOptions> {
  readonly interpose?: Interpose;
  readonly reapMs?: number | null;
}

/** Processes on one store in memory, whose operations run until the test ends. */
class LaneBench {
  readonly clock: ManualClock = manualClock();
  readonly store: Store = memoryStore({ clock: this.clock.wallMs });
  readonly #running: string[] = [];
  finishOthers: () => void = () => undefined;
  readonly #others = new Promise<null>((resolve) => {
    this.finishOthers = () => resolve(null);
  });
  isBroken = false;

  /** The names of the processes, once for each operation that they run. */
  get running(): readonly string[] {
    return [...this.#running].sort();
  }

  async process(
    name: string,
    { interpose = (_, go) => go(), reapMs = null, ...options }: ProcessOptions = {},
  ): Promise<Journal> {
    const store = interposedStore(this.store, interpose);
    const journal = await openJournal({
      store: { ...store, pace: { ...store.pace, reapMs } },
      clock: this.clock,
      leaseMs,
      kinds: {
        job: {
          lane: "lane",
          run: async () => {
            this.#running.push(name);
            await new Promise(() => undefined);
          },
        },
        other: { lane: "other", run: () => this.#others },
      },
      ...options,
    });
    onTestFinished(() => journal.kill());
    const lanes = journal.lanes();
    await this.clock.advance(10);
    await lanes;
    return journal;
  }

  async limit(journal: Journal, limit: number): Promise<void> {
    await (await journal.lanes()).set("lane", { limit }, { by });
    await settle();
  }

  async pass(ms: number): Promise<void> {
    await this.clock.advance(ms);
  }

  passed(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve));
  }

  async shares(): Promise<Readonly<Record<string, number>>> {
    const record = (await this.store.read(laneLedgerKey, []))?.record;
    const members = record === undefined ? {} : (stateOf(record).data as Record<string, { shares: { lane?: number } }>);
    return Object.fromEntries(Object.entries(members).map(([id, { shares }]) => [id, shares.lane ?? 0]));
  }
}

function numbered(prefix: string): () => string {
  let count = 0;
  return () => `${prefix}${count++}`;
}

/** Repeatable chance. */
function chance(seed: number): () => number {
  let state = seed * 7_919;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}

/** While it is so, the store says of all owners that they are gone. */
function takingForGone(isSo: () => boolean): Interpose {
  return async ({ method, args }, go) => (method === "gone" && isSo() ? args[0] : go());
}

/** While it is so, calls about the ledger alone are never answered. */
function hanging(isSo: () => boolean): Interpose {
  return ({ method, args }, go) => {
    const key = method === "commit" ? (args[0] as Change).key : args[0];
    return isSo() && key === laneLedgerKey ? new Promise(() => undefined) : go();
  };
}

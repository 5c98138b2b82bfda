import { expect, onTestFinished, test } from "vitest";
import { passedOverLabel } from "../src/decisions/schedule.js";
import type { Journal } from "../src/journal.js";
import { openJournal } from "../src/open-journal.js";
import type { Change, Store } from "../src/store.js";
import { memoryStore } from "../src/stores/memory.js";
import { interposedStore, type ManualClock, manualClock, type StoreCall } from "../src/testing/index.js";
import { by, until } from "./faults-fixture.js";

test("a resource that an earlier version wrote is looked at once it is changed", async () => {
  const { bare, journal, begun, clock } = await paused();
  const earlier = interposedStore(bare, ({ method, args }, go) =>
    method === "commit" ? bare.commit({ ...(args[0] as Change), addLabels: [] }) : go(),
  );
  await inLanes(await opened(earlier, clock), "k", ["full", "free"]);
  await journal.transact("k", () => ({ result: null, change: { data: "touched" } }), { by });
  await journal.start();
  await within(clock, 10_000, () => begun.includes("k free"));
});

test("the label goes when there is nothing more to pass over", async () => {
  const { bare, journal, begun, clock } = await paused();
  await inLanes(journal, "k", ["full", "free"]);
  expect(await labelled(bare)).toEqual(["k"]);
  await journal.start();
  await within(clock, 10_000, () => begun.includes("k free"));
  await until("it ends", async () => (await labelled(bare)).length === 0);
});

test("however many resources have nothing to be done for them, one behind them is found at the next look", async () => {
  const { journal, calls, begun, clock } = await paused();
  for (let count = 0; count < 1_050; count++) await inLanes(journal, `a${count}`, ["one", "two"], 86_400_000);
  await inLanes(journal, "z", ["full", "free"]);
  await journal.start();
  await within(clock, 2_000, () => begun.includes("z free"));
  expect(calls.filter(({ method }) => method === "find").length).toBeLessThan(30);
});

test("more resources than there are places are looked at in turn, and none is left out", async () => {
  const { journal, begun, clock } = await paused(2);
  const keys = Array.from({ length: 9 }, (_, index) => `k${index}`);
  for (const key of keys) await inLanes(journal, key, ["full", "free"]);
  await journal.start();
  await within(clock, 10_000, () => begun.length === keys.length);
});

test("a resource is moved with its due time, so that a store which keeps floors of them knows", async () => {
  const { bare, journal, calls, begun, clock } = await paused();
  await inLanes(journal, "k", ["full", "free"]);
  const due = (await bare.read("k", []))?.record.dueAt;
  await journal.start();
  await within(clock, 10_000, () => begun.includes("k free"));
  const moves = calls.map(({ args: [change] }) => change as Partial<Change> | undefined);
  expect(moves.find((change) => change?.lane === "free" && change.entries?.length === 0)?.dueAt).toBe(due);
});

test("a look that fails is told, keeps no claim from being made, and is made again", async () => {
  let fails = true;
  const failures: unknown[] = [];
  const { journal, begun, clock } = await paused(
    10,
    ({ method }) => {
      if (method === "find" && fails) throw new Error("no find today");
    },
    failures,
  );
  await inLanes(journal, "hidden", ["full", "free"]);
  await inLanes(journal, "plain", ["free"]);
  await journal.start();
  await within(clock, 1_000, () => begun.includes("plain free"));
  expect(failures).not.toEqual([]);
  fails = false;
  await within(clock, 10_000, () => begun.includes("hidden free"));
});

/** A journal whose lane "full" has no room, not started; all else that begins ends at once. */
async function paused(concurrency = 10, before: (call: StoreCall) => void = () => undefined, failures: unknown[] = []) {
  const clock = manualClock();
  const bare = memoryStore({ clock: clock.wallMs });
  const [calls, begun]: [StoreCall[], string[]] = [[], []];
  const store = interposedStore(bare, async (call, go) => {
    calls.push(call);
    before(call);
    return go();
  });
  const journal = await opened(store, clock, { concurrency, begun, failures });
  journal.pauseLanes(new Set(["full"]));
  return { bare, journal, calls, begun, clock };
}

async function opened(
  store: Store,
  clock: ManualClock,
  {
    concurrency = 10,
    begun = [],
    failures = [],
  }: { concurrency?: number; begun?: string[]; failures?: unknown[] } = {},
): Promise<Journal> {
  const journal = await openJournal({
    store,
    clock,
    concurrency,
    kinds: { job: { mode: "shared", run: async ({ key, input }) => void begun.push(`${key} ${String(input)}`) } },
    observe: (event) => void (event.kind === "store failed" && failures.push(event.error)),
  });
  onTestFinished(() => journal.kill().catch(() => undefined));
  return journal;
}

/** Accepts an operation in each of these lanes. */
async function inLanes(journal: Journal, key: string, lanes: readonly string[], delayMs = 0): Promise<void> {
  const accept = lanes.map((lane) => ({ kind: "job", input: lane, lane, delayMs }));
  await journal.transact(key, () => ({ result: null, change: { accept } }), { by });
}

async function labelled(store: Store): Promise<readonly string[]> {
  return (await store.find({ label: passedOverLabel, after: null, limit: 100 })).map(({ key }) => key);
}

/** Lets so much time pass at most until it holds. */
async function within(clock: ManualClock, ms: number, holds: () => boolean): Promise<void> {
  for (let passed = 0; !holds(); passed += 100) {
    expect(passed, "it has not come about").toBeLessThan(ms);
    await clock.advance(100);
  }
}

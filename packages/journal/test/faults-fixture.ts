import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { expect, onTestFinished } from "vitest";
import type { Journal, JournalOptions } from "../src/journal.js";
import type { JournalEvent } from "../src/observe.js";
import { openJournal } from "../src/open-journal.js";
import type { NewOperation, Outcome } from "../src/operation.js";
import { memoryStore } from "../src/stores/memory.js";
import { type FaultyStore, faultyStore, type ManualClock, manualClock } from "../src/testing/index.js";

export const by = { actor: { type: "user", subject: "faults" } } as const;

export interface Bench {
  readonly journal: Journal;
  readonly events: JournalEvent[];
}

/** A journal that runs, and what it observed; dropped when the test ends. */
export async function startJournal(options: JournalOptions): Promise<Bench> {
  const events: JournalEvent[] = [];
  const observe = (event: JournalEvent) => {
    events.push(event);
    options.observe?.(event);
  };
  const journal = await openJournal({ ...options, observe });
  onTestFinished(async () => {
    await journal.kill().catch(() => undefined);
  });
  await journal.start();
  return { journal, events };
}

export interface MemoryBench extends Bench {
  readonly store: FaultyStore;
  readonly clock: ManualClock;
}

/** The same in memory, on a clock that the test moves and a store that fails on command. */
export async function startInMemory(options: Omit<JournalOptions, "store" | "clock">): Promise<MemoryBench> {
  const clock = manualClock();
  const store = faultyStore(memoryStore({ clock: clock.wallMs }));
  return { ...(await startJournal({ ...options, store, clock })), store, clock };
}

/** Accepts one operation and answers its id. */
export async function accept(
  journal: Journal,
  key: string,
  operation: NewOperation,
  options: { readonly timeoutMs?: number } = {},
): Promise<string> {
  const asked = { by, ...options };
  const { accepted } = await journal.transact(key, () => ({ result: null, change: { accept: [operation] } }), asked);
  return accepted[0]?.id ?? "";
}

/** The outcome of an operation that ends within ten seconds of real time. */
export async function outcomeOf(journal: Journal, key: string, id: string): Promise<Outcome> {
  return until(`${id} of ${key} ends`, async () => (await journal.operation(key, id))?.outcome ?? undefined);
}

/** What an operation comes to as the clock goes on by up to so long. */
export async function outcomeWithin(bench: MemoryBench, key: string, id: string, ms: number): Promise<Outcome> {
  for (let passed = 0; ; passed += 100) {
    const outcome = (await bench.journal.operation(key, id))?.outcome;
    if (outcome) return outcome;
    expect(passed, `${id} of ${key} has not ended after ${passed} ms`).toBeLessThan(ms);
    await bench.clock.advance(100);
  }
}

/** Waits for something to be there; fails with `what` if that takes too long. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  withinMs = 10_000,
): Promise<T> {
  const giveUpAt = performance.now() + withinMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > giveUpAt) throw new Error(`waited in vain until ${what}`);
    await sleep(5);
  }
}

/** Something that a test opens when it wants to. */
export class Latch {
  readonly opened: Promise<void>;
  open: () => void = () => undefined;

  constructor() {
    this.opened = new Promise((resolve) => {
      this.open = resolve;
    });
  }
}

/** Lets everything run that waits for nothing but its turn. */
export async function settle(): Promise<void> {
  for (let turns = 0; turns < 30; turns++) await turn();
}

export function kindsOf(events: readonly JournalEvent[], kind: JournalEvent["kind"]): readonly JournalEvent[] {
  return events.filter((event) => event.kind === kind);
}

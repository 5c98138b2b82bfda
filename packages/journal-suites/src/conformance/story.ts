import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type {
  Attribution,
  Entry,
  JournalEvent,
  NewOperation,
  Outcome,
  Resource,
  ResourceChange,
} from "@osbert/journal";
import { type Journal, JournalError, type JournalErrorCode, type JournalOptions, openJournal } from "@osbert/journal";
import type { Store, StoredRecord } from "@osbert/journal/store";
import type { EngineUnderTest } from "./engine-under-test.js";
import { StoryClock } from "./story-clock.js";
import { WatchedStore } from "./watched-store.js";

/** Tests of one subject: what the engine promises → the story that shows it. */
export type EngineTests = Readonly<Record<string, (story: Story) => Promise<void>>>;

/** How long leases last in the stories, and how long an interrupted function is waited for. */
export const leaseMs = 30_000;
export const graceMs = 5_000;

export const ann: Attribution = { actor: { type: "user", subject: "ann" }, requestId: "request-of-ann" };
export const bob: Attribution = { actor: { type: "operator", subject: "bob" }, requestId: "request-of-bob" };

/** A process of the story: its journal, its way to the store, and what it told. */
export interface Process {
  readonly journal: Journal;
  readonly store: WatchedStore;
  readonly events: JournalEvent[];
}

export type ProcessOptions = Omit<JournalOptions, "store" | "clock">;

type Place = Awaited<ReturnType<EngineUnderTest["open"]>>;

const patienceMs = 10_000;
const tickMs = 10;

/** Processes with real engines on one real store, on a clock that the story moves. */
export class Story {
  readonly subject: EngineUnderTest;
  readonly clock: StoryClock;
  readonly #stores: WatchedStore[] = [];
  readonly #journals: Journal[] = [];
  readonly #place: Place;
  #first = true;
  /** Of a store with one owner: the open one, and by how many processes of the story it is shared. */
  #shared: { readonly store: Store; users: number } | undefined;

  private constructor(subject: EngineUnderTest, clock: StoryClock, place: Place, stores: WatchedStore[]) {
    this.subject = subject;
    this.clock = clock;
    this.#place = place;
    this.#stores = stores;
  }

  /** Tells a story on a fresh store, and clears up after it. A failure of the story hides one of the clearing up. */
  static async tell(subject: EngineUnderTest, body: (story: Story) => Promise<void>): Promise<void> {
    const stores: WatchedStore[] = [];
    const clock = new StoryClock(() => quiet(stores));
    const place = await subject.open(clock.now);
    const story = new Story(subject, clock, place, stores);
    const failures: unknown[] = [];
    const note = (failure: unknown) => failures.push(failure);
    await body(story).catch(note);
    for (const store of stores) store.letAllGo();
    for (const journal of story.#journals) await journal.kill().catch(note);
    await place.dispose().catch(note);
    if (failures.length > 0) throw failures[0];
  }

  get now(): number {
    return this.clock.now();
  }

  /** A process that accepts and tells; it runs operations only after `journal.start()`. */
  async process(options: ProcessOptions): Promise<Process> {
    const reached = await this.#reach();
    // A store that believes in a single process is told that there are more in this story, so that later ones look for themselves.
    const alone = this.#stores.every((other) => other.isClosed);
    const store = new WatchedStore(alone ? reached : polled(reached));
    this.#stores.push(store);
    const events: JournalEvent[] = [];
    const journal = await openJournal({
      leaseMs,
      graceMs,
      random: () => 1,
      ...options,
      clock: this.clock,
      store: store.store,
      observe: (event) => {
        events.push(event);
        options.observe?.(event);
      },
    });
    this.#journals.push(journal);
    return { journal, store, events };
  }

  /** A process that runs operations. */
  async engine(options: ProcessOptions): Promise<Process> {
    const process = await this.process(options);
    await process.journal.start();
    return process;
  }

  /** How many durable commits were made so far, as far as the store can tell. */
  async durableCommits(): Promise<number> {
    assert.ok(this.#place.durableCommits !== undefined, "say how to count durable commits, or except this test");
    return this.#place.durableCommits();
  }

  /** Everything that was asked for has been done, as far as no time has to pass. */
  async quiet(): Promise<void> {
    await quiet(this.#stores);
  }

  async pass(ms: number): Promise<void> {
    await this.clock.pass(ms);
  }

  /** Waits for a state. A little time passes meanwhile, so that who polls may see it. */
  async until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    const end = performance.now() + patienceMs;
    for (let looks = 0; ; looks++) {
      await this.quiet();
      if (await holds()) return;
      if (performance.now() > end) throw new Error(`waited ${patienceMs} ms in vain until ${what}`);
      await sleep(1);
      if (looks > 2) await this.pass(tickMs);
    }
  }

  /** Waits for what may need a little time to pass: who meets others at a resource pauses before the next try. */
  async over<T>(work: Promise<T>): Promise<T> {
    let over = false;
    const end = () => {
      over = true;
    };
    work.then(end, end);
    await this.until("it is over", () => over);
    return work;
  }

  /** Waits for the end of an operation, as any process may see it. */
  async ends({ journal }: Process, key: string, operation: string): Promise<Outcome> {
    let outcome: Outcome | null | undefined;
    await this.until(`operation ${operation} of ${key} has ended`, async () => {
      outcome = (await journal.operation(key, operation))?.outcome;
      return outcome !== null && outcome !== undefined;
    });
    return outcome as Outcome;
  }

  /** Waits until the operation does nothing: it has a later time, and nobody holds it. */
  async rests({ journal }: Process, key: string, operation: string): Promise<void> {
    await this.until(`operation ${operation} of ${key} waits`, async () => {
      const open = (await journal.operation(key, operation))?.open;
      return open !== null && open !== undefined && open.attempts > 0 && open.readyAt > this.now;
    });
    await this.quiet();
  }

  /** The record as the store keeps it. */
  async record({ store }: Process, key: string): Promise<StoredRecord> {
    const found = await store.store.read(key, []);
    assert.ok(found !== undefined, `${key} must exist`);
    return found.record;
  }

  /** Whoever reads it next finds a record that makes no sense, and it is due. Answers how to mend it. */
  async damage(process: Process, key: string, state = "{{ not JSON"): Promise<() => Promise<void>> {
    const before = await this.record(process, key);
    await this.#overwrite(process, key, state);
    return () => this.#overwrite(process, key, before.state);
  }

  /** Writes past the journal: an entry of the resource is gone. */
  async tearOut(process: Process, key: string, seq: number): Promise<void> {
    const { state } = await this.record(process, key);
    await this.#overwrite(process, key, state, [seq]);
  }

  async #overwrite(process: Process, key: string, state: string, deleteEntries: readonly number[] = []): Promise<void> {
    const { seq, epoch, lane } = await this.record(process, key);
    const outcome = await process.store.store.commit({
      key,
      expected: { seq, epoch },
      token: `damage${seq}`,
      state,
      lane,
      epoch,
      lease: "keep",
      dueAt: this.now,
      entries: [
        {
          kind: "overwritten",
          operation: null,
          body: '{"actor":{"type":"operator","subject":"story"},"payload":null}',
        },
      ],
      putParts: [],
      deleteParts: [],
      addLabels: [],
      removeLabels: [],
      deleteEntries,
      wake: true,
    });
    assert.equal(outcome.kind, "committed");
  }

  async #reach(): Promise<Store> {
    if (this.subject.oneOwner === undefined) {
      const store = this.#first ? this.#place.store : await this.#place.another();
      this.#first = false;
      return store;
    }
    if (this.#shared === undefined) {
      const store = this.#first ? this.#place.store : await this.#place.another();
      this.#first = false;
      await store.open();
      this.#shared = { store, users: 0 };
    }
    const { store } = this.#shared;
    this.#shared.users++;
    return sharing(store, async () => {
      if (this.#shared === undefined || --this.#shared.users > 0) return;
      this.#shared = undefined;
      await store.close();
    });
  }
}

/** A store that is looked at now and then also if it says that no other process can leave work there. */
function polled(store: Store): Store {
  const pace = { ...store.pace, pollMs: store.pace.pollMs ?? 1_000 };
  return new Proxy(store, {
    get: (target, name) => {
      if (name === "pace") return pace;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** One store for several journals of this process: it is open already, and the last one closes it. */
function sharing(store: Store, close: () => Promise<void>): Store {
  return new Proxy(store, {
    get: (target, name) => {
      if (name === "open") return async () => undefined;
      if (name === "close") return close;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

async function quiet(stores: readonly WatchedStore[]): Promise<void> {
  const end = performance.now() + patienceMs;
  for (let still = 0; still < 5; ) {
    await new Promise((resolve) => setImmediate(resolve));
    still = stores.every((store) => store.underWay === 0) ? still + 1 : 0;
    if (performance.now() > end) throw new Error(`the store did not come to rest within ${patienceMs} ms`);
  }
}

/** Asks for one operation and answers its id. */
export async function accept(
  { journal }: Process,
  key: string,
  operation: NewOperation,
  by: Attribution = ann,
): Promise<string> {
  const { accepted } = await journal.transact(key, () => ({ result: null, change: { accept: [operation] } }), { by });
  return accepted[0]?.id ?? "";
}

/** Asks for several operations in one decision and answers their ids. */
export async function acceptAll(
  { journal }: Process,
  key: string,
  operations: readonly NewOperation[],
): Promise<readonly string[]> {
  const { accepted } = await journal.transact(key, () => ({ result: null, change: { accept: operations } }), {
    by: ann,
  });
  return accepted.map(({ id }) => id);
}

/** Changes a resource. */
export async function change(
  { journal }: Process,
  key: string,
  what: ResourceChange | ((resource: Resource | undefined) => ResourceChange),
  by: Attribution = ann,
): Promise<void> {
  const decide = (resource: Resource | undefined) => ({
    result: null,
    change: typeof what === "function" ? what(resource) : what,
  });
  await journal.transact(key, decide, { by });
}

/** A resource that must be there. */
export async function read({ journal }: Process, key: string, parts?: readonly string[]): Promise<Resource> {
  const resource = await journal.read(key, parts);
  assert.ok(resource !== undefined, `${key} must exist`);
  return resource;
}

/** All entries of a resource in their order. */
export async function entriesOf({ journal }: Process, key: string): Promise<readonly Entry[]> {
  const all: Entry[] = [];
  for (;;) {
    const page = await journal.entries(key, { after: all.at(-1)?.seq ?? 0, limit: 1_000 });
    all.push(...page);
    if (page.length < 1_000) return all;
  }
}

/** The kinds of an operation's entries in their order. */
export async function storyOf(process: Process, key: string, operation: string): Promise<readonly string[]> {
  return (await entriesOf(process, key)).filter((entry) => entry.operation === operation).map(({ kind }) => kind);
}

export function isJournalError(code: JournalErrorCode): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof JournalError, `must be a JournalError, is ${String(error)}`);
    assert.equal(error.code, code);
    return true;
  };
}

/** A promise that the story opens. */
export function gate<T = void>(): { readonly passed: Promise<T>; readonly open: (value: T) => void } {
  let open: (value: T) => void = () => undefined;
  const passed = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

export function numbered(count: number, prefix = ""): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${String(index).padStart(4, "0")}`);
}

import assert from "node:assert/strict";
import type {
  Change,
  ClaimAnswer,
  ClaimRequest,
  EntryRange,
  PartRange,
  Query,
  Store,
  StoredEntry,
  StoredRecord,
} from "@osbert/journal/store";
import { changeOf, type Details, newRecord } from "./changes.js";
import type { OpenedStore, StoreUnderTest } from "./store-under-test.js";
import { SuiteClock } from "./suite-clock.js";

/** Tests of one subject: what the store has to do → the proof. */
export type StoreTests = Readonly<Record<string, (fixture: StoreFixture) => Promise<void>>>;

/** How long leases last in the suite, unless a test says otherwise. */
export const leaseMs = 30_000;

/** A store on its own data and clock, with short ways to say what tests of stores often say. */
export class StoreFixture {
  readonly clock: SuiteClock;
  readonly #subject: StoreUnderTest;
  readonly #places: OpenedStore[] = [];
  readonly #place: OpenedStore;
  #store: Store;
  readonly #open = new Set<Store>();

  private constructor(subject: StoreUnderTest, clock: SuiteClock, place: OpenedStore) {
    this.#subject = subject;
    this.clock = clock;
    this.#place = place;
    this.#places.push(place);
    this.#store = place.store;
  }

  /** Runs a test with a fresh store, and clears up after it. A failure of the test hides one of the clearing up. */
  static async use(subject: StoreUnderTest, body: (fixture: StoreFixture) => Promise<void>): Promise<void> {
    const clock = new SuiteClock();
    const fixture = new StoreFixture(subject, clock, await subject.open(clock.now));
    const failures: unknown[] = [];
    const note = (failure: unknown) => failures.push(failure);
    await fixture
      .open(fixture.#store)
      .then(() => body(fixture))
      .catch(note);
    for (const store of fixture.#open) await store.close().catch(note);
    for (const place of fixture.#places) await place.dispose().catch(note);
    if (failures.length > 0) throw failures[0];
  }

  get store(): Store {
    return this.#store;
  }

  /** A second store on the same data, as another process would have it. */
  async another(): Promise<Store> {
    return this.open(await this.#place.another());
  }

  /** A further place where nothing was opened yet. */
  async unopened(): Promise<OpenedStore> {
    const place = await this.#subject.open(this.clock.now);
    this.#places.push(place);
    return place;
  }

  /** Opens a store; it is closed when the test ends. */
  async open(store: Store): Promise<Store> {
    this.#open.add(store);
    await store.open();
    return store;
  }

  /** Closes a store before the test ends. */
  async close(store: Store): Promise<void> {
    this.#open.delete(store);
    await store.close();
  }

  /** Goes on with a new store on the same data, after the old one was closed: a restart. */
  async restart(): Promise<void> {
    if (this.#open.has(this.#store)) await this.close(this.#store);
    this.#store = await this.another();
  }

  /** Commits a new record and answers it. */
  async create(key: string, details: Details = {}): Promise<StoredRecord> {
    return this.commit(newRecord(key, details));
  }

  /** Commits a change of a record as it was read and answers what it is now. */
  async change(record: StoredRecord, details: Details = {}): Promise<StoredRecord> {
    return this.commit(changeOf(record, details));
  }

  /** Commits what must not be refused. */
  async commit(change: Change): Promise<StoredRecord> {
    const outcome = await this.#store.commit(change);
    assert.deepEqual(
      outcome,
      { kind: "committed", at: this.clock.now() },
      `the change of ${change.key} must be committed`,
    );
    return this.record(change.key);
  }

  /** Sees to it that a change is refused. */
  async refuses(change: Change): Promise<void> {
    assert.deepEqual(
      await this.#store.commit(change),
      { kind: "conflict" },
      `the change of ${change.key} must be refused`,
    );
  }

  /** The record of a resource that must exist. */
  async record(key: string): Promise<StoredRecord> {
    const found = await this.#store.read(key, []);
    assert.ok(found !== undefined, `${key} must exist`);
    return recordFields(found.record);
  }

  async claim(owner: string, request: Partial<ClaimRequest> = {}): Promise<ClaimAnswer> {
    return claimFrom(this.#store, owner, request);
  }

  /** Makes a record that is due and claims it for `owner`. */
  async createHeld(key: string, owner: string, details: Details = {}): Promise<StoredRecord> {
    await this.create(key, { dueAt: this.clock.now(), ...details });
    const { claimed } = await this.claim(owner);
    assert.deepEqual(
      claimed.map((record) => record.key),
      [key],
      `${key} must be claimed for ${owner}`,
    );
    return this.record(key);
  }

  /** Keys that `owner` is given if it claims all it can. */
  async claimedKeys(owner: string, request: Partial<ClaimRequest> = {}): Promise<readonly string[]> {
    return keysOf((await this.claim(owner, request)).claimed);
  }

  async entries(
    key: string,
    range: EntryRange = { kind: "after", after: 0, limit: 10_000 },
  ): Promise<readonly StoredEntry[]> {
    const found = await this.#store.entries(key, range);
    return found.map(({ seq, at, token, kind, operation, body }) => ({ seq, at, token, kind, operation, body }));
  }

  async seqs(key: string, range?: EntryRange): Promise<readonly number[]> {
    return (await this.entries(key, range)).map((entry) => entry.seq);
  }

  /** Parts as id → body, in the order of the answer. */
  async parts(key: string, range: Partial<PartRange> = {}): Promise<Readonly<Record<string, string>>> {
    const found = await this.#store.parts(key, { prefix: "", after: null, limit: 10_000, ...range });
    return Object.fromEntries(found.map(({ id, body }) => [id, body]));
  }

  async partIds(key: string, range: Partial<PartRange> = {}): Promise<readonly string[]> {
    const found = await this.#store.parts(key, { prefix: "", after: null, limit: 10_000, ...range });
    return found.map(({ id }) => id);
  }

  /** Keys in the order of the answer. */
  async find(query: Partial<Query> = {}): Promise<readonly string[]> {
    return keysOf(await this.#store.find({ after: null, limit: 10_000, ...query }));
  }

  async labelled(name: string, value: string): Promise<readonly string[]> {
    return this.find({ label: { name, value } });
  }
}

/** A claim with wide bounds, unless the test says otherwise. */
export async function claimFrom(
  store: Store,
  owner: string,
  request: Partial<ClaimRequest> = {},
): Promise<ClaimAnswer> {
  const answer = await store.claim({ owner, leaseMs, limit: 1_000, laneRoom: 1_000, rooms: new Map(), ...request });
  return { now: answer.now, claimed: answer.claimed.map(recordFields), nextDueAt: answer.nextDueAt };
}

export function keysOf(records: readonly StoredRecord[]): readonly string[] {
  return records.map((record) => record.key);
}

/** The contract's fields alone: what else a store puts on its records is its own affair. */
export function recordFields({ key, seq, epoch, state, lane, dueAt, lease }: StoredRecord): StoredRecord {
  return { key, seq, epoch, state, lane, dueAt, lease: lease && { owner: lease.owner, until: lease.until } };
}

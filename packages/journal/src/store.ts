/**
 * The port that every store implements, and all that the journal asks of one.
 *
 * A store keeps, for each resource, one record with its parts, entries and labels beside it. It never looks into the texts
 * it is given. Everything about operations, steps and retries is decided above this port; here there is only one atomic
 * change (`commit`), one way to become the runner (`claim`), and reading.
 *
 * The suite in `@osbert/journal-suites/conformance` is the specification: a store that passes it keeps the promises J1 to J12.
 */
export interface Store {
  /** For logs and errors: "sqlite", "postgres"… */
  readonly name: string;

  /** How long a lease should last here by default, and how often to look for work of others. */
  readonly pace: Pace;

  /** Connects, checks the schema (or migrates it, as the store was told). Called once before anything else. */
  open(): Promise<void>;

  /** Waits for what is under way and lets go of everything. Nothing may be called afterwards. */
  close(): Promise<void>;

  /** The store's clock in milliseconds since 1970. All due times and leases are on it. */
  now(): Promise<number>;

  /** The record of a resource and those of the wanted parts that exist, all of one moment. */
  read(key: string, parts: readonly string[]): Promise<StoredResource | undefined>;

  /**
   * Where these records are, of those that exist, and nothing of their texts: for whoever keeps copies and wants to know whether they
   * are old. At most 1,000 keys, each looked up by itself (J10).
   */
  versions(keys: readonly string[]): Promise<ReadonlyMap<string, Expected>>;

  /**
   * J2: the one commit point. All of the change, durably, if the record still has the expected seq and epoch; otherwise
   * nothing of it. Concurrent commits share one durable write (J12). Rejects with `store-unavailable` when the outcome is
   * not known; the caller repeats the same change (same token) and reads what became of it.
   */
  commit(change: Change): Promise<CommitOutcome>;

  /**
   * Makes `owner` the runner of resources that are due (`dueAt <= now`) and not leased by another live owner: at most
   * `limit`, and in each lane at most its room, earliest first. A claimed record's lease runs until now + leaseMs, and so
   * does its due time; its epoch is one higher than before, unless `owner` held a running lease already (there is new work for it).
   * Looks only at what is due, never at all resources (J10).
   */
  claim(request: ClaimRequest): Promise<ClaimAnswer>;

  /**
   * Prolongs leases that `owner` still holds under the given epochs, and the due times that stand for them; answers the
   * keys that it still holds. A due time that was pulled in by new work stays.
   */
  renew(owner: string, held: readonly Held[], leaseMs: number): Promise<readonly string[]>;

  /** Keys that `owner` has a lease on, also one that has run out, by key (byte order). For an owner that may have missed an answer. */
  heldBy(owner: string, page: HeldPage): Promise<readonly string[]>;

  /** Gives leases back: no lease, the given due time, epoch + 1. Those that are not held any more, or have moved on (seq), are left alone. */
  release(owner: string, held: readonly Release[]): Promise<void>;

  /**
   * Makes it known that `owner` lives, for as long as this process does. `lost` is called if the store can no longer vouch for it
   * (its session broke): others may then take its leases. A session that breaks without a word to this end is found out within a few
   * seconds; until then, an owner that wants to be sure asks `renew`.
   */
  attend(owner: string, lost: () => void): Promise<void>;

  /** `owner` is gone on purpose. */
  leave(owner: string): Promise<void>;

  /**
   * Frees (epoch + 1, due now) the leases of owners that the store knows to be dead (J11), and of those it knows nothing of: a commit that
   * was long under way may have put a lease under the name of an owner that was freed meanwhile. Answers how many.
   */
  reap(owner: string): Promise<number>;

  /**
   * Those of these owners that the store knows to be dead, or knows nothing of: for what else may be written under the name of one, besides
   * leases. None of which it cannot tell. Changes nothing.
   */
  gone(owners: readonly string[]): Promise<readonly string[]>;

  /** Entries of one resource. */
  entries(key: string, range: EntryRange): Promise<readonly StoredEntry[]>;

  /** Parts of one resource whose id starts with `prefix`, by id (byte order), after `after`. */
  parts(key: string, range: PartRange): Promise<readonly StoredPart[]>;

  /**
   * Records by key (byte order) after `after`: all, or those whose key starts with a prefix and that have a label, as asked. Or those
   * with work, in the order of `WorkPlace`, from the index that claims walk along.
   */
  find(query: Query): Promise<readonly StoredRecord[]>;

  /**
   * How much is open, for whoever watches. Counts along the indexes of what is due and of what is leased, and reads the earliest due
   * records of each lane, both up to the given bounds and never all (J10). Lanes in which nothing has a due time are left out, and so
   * is the lane "", where nothing is open. Its numbers need not be of one moment.
   */
  backlog(request: BacklogRequest): Promise<StoredBacklog>;

  /** Removes the resource with all that belongs to it, if it still has the expected seq and epoch. */
  remove(key: string, expected: Expected): Promise<boolean>;

  /** Takes a resource that cannot be read out of the way: no due time, no lease, epoch + 1, and the label `setAsideLabel`. */
  setAside(key: string): Promise<void>;

  /** The reverse: due now, label removed. */
  restore(key: string): Promise<void>;

  /**
   * Puts other texts in the place of texts, each by itself and only where the old one still stands: so it may go on beside commits,
   * and whatever they write wins. Nothing else changes: no seq, epoch, lease, due time, label or time of an entry. Answers how many
   * were replaced; what is not there is passed over. No two are of one place.
   */
  replaceTexts(key: string, replacements: readonly TextReplacement[]): Promise<number>;

  /** Calls back when some process committed a change with `wake` or `followed` set. May be spurious, may be missing: it only saves waiting for a poll. */
  onWake(listener: WakeListener): () => void;
}

/** Why a process is woken: there is work that it may claim, or a value has changed of which it may have a copy. */
export type Woken = "work" | "value";

/** `key`: of the value, where the store knows it. Without one it may be any. */
export type WakeListener = (what: Woken, key?: string) => void;

/** Before everything that has work: no due time is so late, and no lane but "" so early. */
export const beforeAllWork: WorkPlace = { lane: "", dueAt: Number.MAX_SAFE_INTEGER, key: "" };

/**
 * The label of resources that were set aside, so that `find` lists them. The reason is told as an event and not kept: words about a text
 * that cannot be read may hold some of it, and labels are never encrypted.
 */
export const setAsideLabel: Label = { name: "osbert.set-aside", value: "yes" };

export interface Pace {
  readonly leaseMs: number;
  /** Look for due work at least this often, because others may have committed some. `null`: no other process can. */
  readonly pollMs: number | null;
  /** Look for dead owners this often. `null`: only at start. */
  readonly reapMs: number | null;
}

export interface Expected {
  readonly seq: number;
  readonly epoch: number;
}

export interface Lease {
  readonly owner: string;
  readonly until: number;
}

export interface StoredRecord {
  readonly key: string;
  /** The number of its newest entry. Every commit raises it, or, if it brings no entry, the epoch. */
  readonly seq: number;
  /** How often its runner changed; fences off late writers. */
  readonly epoch: number;
  readonly state: string;
  /** The class of work that is due, for bounded concurrency per class. */
  readonly lane: string;
  readonly dueAt: number | null;
  readonly lease: Lease | null;
}

export interface StoredResource {
  readonly record: StoredRecord;
  /** Wanted parts that exist: id → body. */
  readonly parts: ReadonlyMap<string, string>;
}

export interface StoredPart {
  readonly id: string;
  readonly body: string;
}

export interface StoredEntry extends NewEntry {
  readonly seq: number;
  readonly at: number;
  /** The token of the change that appended it. */
  readonly token: string;
}

export interface NewEntry {
  readonly kind: string;
  readonly operation: string | null;
  readonly body: string;
}

/** One of the texts of a resource: the state that it has at a seq, a part, an entry. */
export type TextPlace =
  | { readonly kind: "state"; readonly seq: number }
  | { readonly kind: "part"; readonly id: string }
  | { readonly kind: "entry"; readonly seq: number };

export interface TextReplacement {
  readonly place: TextPlace;
  readonly from: string;
  readonly to: string;
}

/** One atomic change of one resource. */
export interface Change {
  readonly key: string;
  /** What the record must be at. `null`: it must not exist. */
  readonly expected: Expected | null;
  /** Unique per change: tells after a lost answer whether it was committed. At most 32 characters. */
  readonly token: string;
  readonly state: string;
  readonly lane: string;
  /** The epoch from now on: the expected one, or one higher where the lease is taken; for a new record, where to begin. */
  readonly epoch: number;
  /**
   * "keep" leaves owner and end of the lease as they are. One of the same owner and epoch is never shortened, nor the due time that stands
   * for it: the change may have been under way for longer than a renewal (J3).
   */
  readonly lease: Lease | null | "keep";
  /** "keep" leaves the due time as it is. */
  readonly dueAt: number | null | "keep";
  /**
   * They are numbered expected.seq + 1, + 2, …; the last number is the new seq. Stamped with the store's clock. None only where the epoch is
   * raised: each commit raises one of the two, so that none is made on what another has changed.
   */
  readonly entries: readonly NewEntry[];
  /** Parts to write and to remove; no id is in both. */
  readonly putParts: readonly StoredPart[];
  readonly deleteParts: readonly string[];
  readonly addLabels: readonly Label[];
  readonly removeLabels: readonly Label[];
  /** Old entries to remove (retention), by number. */
  readonly deleteEntries: readonly number[];
  /** Tell other processes that there is work. */
  readonly wake: boolean;
  /** Tell other processes that a value has changed of which they may have a copy. */
  readonly followed?: boolean;
}

export type CommitOutcome = { readonly kind: "committed"; readonly at: number } | { readonly kind: "conflict" };

export interface Label {
  readonly name: string;
  readonly value: string;
}

export interface ClaimRequest {
  readonly owner: string;
  readonly leaseMs: number;
  readonly limit: number;
  /** How many may be claimed of a lane that is not in `rooms`. */
  readonly laneRoom: number;
  /** Lanes with another room; 0: none. */
  readonly rooms: ReadonlyMap<string, number>;
}

export interface ClaimAnswer {
  readonly now: number;
  readonly claimed: readonly StoredRecord[];
  /** The earliest due time after now in any lane with room, if there is one. */
  readonly nextDueAt: number | null;
}

export interface Held {
  readonly key: string;
  readonly epoch: number;
}

export interface HeldPage {
  readonly after: string | null;
  readonly limit: number;
}

export interface Release extends Held {
  readonly seq: number;
  /** `"now"`: due at once, on the store's clock. */
  readonly dueAt: number | null | "now";
}

export type EntryRange =
  | { readonly kind: "numbers"; readonly seqs: readonly number[] }
  | { readonly kind: "after"; readonly after: number; readonly limit: number }
  | { readonly kind: "before"; readonly before: number; readonly limit: number }
  /** The entry of the kind `settled` of an operation, of which there is at most one: found by an index, however long the journal is (J10). */
  | { readonly kind: "settled"; readonly operation: string };

export interface PartRange {
  readonly prefix: string;
  readonly after: string | null;
  readonly limit: number;
}

export interface BacklogRequest {
  /** Count no further than this, in each lane. */
  readonly limit: number;
  /** Records to read of each lane. */
  readonly sample: number;
}

export interface StoredBacklog {
  readonly now: number;
  /** By lane (byte order). */
  readonly lanes: readonly LaneBacklog[];
  /** Records that someone runs, in all lanes; counted up to the limit. */
  readonly leased: number;
}

export interface LaneBacklog {
  readonly lane: string;
  /** Due by now. */
  readonly due: number;
  /** Due later. What runs is among them: the end of its lease is its due time. */
  readonly later: number;
  /** The earliest due records. */
  readonly sample: readonly StoredRecord[];
}

export interface Query {
  readonly label?: Label;
  readonly prefix?: string;
  /** Only what has work; `label`, `prefix` and `after` do not count then. */
  readonly work?: WorkRange;
  readonly after: string | null;
  readonly limit: number;
  /** Of a store that encrypts: a state whose key is missing here is given as it is stored, which is no JSON, instead of an error. */
  readonly mayBeLocked?: boolean;
}

/** Records with a due time, of one lane, or (`null`) of all lanes but "", which is that of resources without work. */
export interface WorkRange {
  readonly lane: string | null;
  readonly after: WorkPlace | null;
}

/** Where a record with work stands: by lane, due time and key, in this order. It moves when its due time does. */
export interface WorkPlace {
  readonly lane: string;
  readonly dueAt: number;
  readonly key: string;
}

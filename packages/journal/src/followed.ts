import type { Clock } from "./clock.js";
import type { StoreTime } from "./engine/time.js";
import { JournalError } from "./errors.js";
import { frozen } from "./frozen.js";
import { type Json, toJsonText } from "./json.js";
import { limits } from "./limits.js";
import type { Observe } from "./observe.js";
import type { Attribution } from "./operation.js";
import type { Decide, ResourceChange } from "./resource.js";
import { stateOf } from "./state.js";
import type { Expected, Store, StoredRecord } from "./store.js";

/** A small durable value, and the copy of it that this process has. */
export interface Followed<Value> {
  readonly key: string;
  /** The copy. Reading it asks nobody. It is frozen. */
  readonly value: Value;
  /**
   * `null` while the copy is what the store has, as far as this process can know. Else the copy may be old: the store does not answer, or
   * what it has cannot be read. The time, on the store's clock, at which it was last known to be right.
   */
  readonly staleSince: number | null;
  /**
   * Changes the value in all processes. `decide` is given the value as the store has it, and is called again if another process was
   * faster; `undefined` leaves it as it is. Resolves to the value as it is then, when that is durable and in the copy.
   */
  update(
    decide: (value: Value, now: number) => FollowedChange<Value> | undefined,
    options: FollowedOptions,
  ): Promise<Value>;
  /** Calls back after the copy has changed, whoever changed it. What it throws is lost. Answers how to call it off. */
  onChange(listener: (value: Value, before: Value) => void): () => void;
  /** Follows it no longer: the copy stays as it is, and nobody is told. */
  close(): void;
}

/** What becomes of a followed value. */
export interface FollowedChange<Value> {
  readonly value: Value;
  /** What its journal is to tell of the change. */
  readonly entries?: ResourceChange["entries"];
}

export interface FollowedOptions {
  /** Who asks, why, and under which request. */
  readonly by: Attribution;
  readonly timeoutMs?: number;
}

export interface FollowingPorts {
  readonly store: Store;
  readonly clock: Clock;
  readonly time: StoreTime;
  readonly observe: Observe;
  /** Asks the store until it answers, for as long as a caller may wait. */
  readonly persist: <T>(ask: () => Promise<T>) => Promise<T>;
  /** Rejects if the work is not over in the time that a caller may wait. */
  readonly within: <T>(work: Promise<T>) => Promise<T>;
  readonly transact: <Result>(key: string, decide: Decide<Result>, options: FollowedOptions) => Promise<Result>;
}

/** After a look that failed, where nobody polls. */
const lookAgainMs = 1_000;

/** What this process has of one key, for all who follow it here. */
class Copy {
  readonly key: string;
  readonly followers = new Set<Follower<unknown>>();
  /** Those who wait for the first read, and will follow then. */
  beginning = 0;
  /** Where the record was; `null`: there was none. */
  version: Expected | null = null;
  data: Json = null;
  text = "null";
  /** Raised with all that is learned: an answer that was under way meanwhile may be older. */
  learned = 0;
  /** The version that could not be read, and when the copy was last right. `null`: not known, or it may be read later as it is. */
  damaged: { readonly version: Expected | null; readonly since: number } | null = null;
  first: Promise<void> | undefined;

  constructor(key: string) {
    this.key = key;
  }
}

/**
 * The copies of a journal. Own changes are in them at once, those of others as soon as the store tells of them, and where it cannot, or
 * its word got lost, with the next poll: one question for all copies, which answers no texts. While the store is away, what is known
 * stays.
 */
export class Following {
  readonly #ports: FollowingPorts;
  readonly #copies = new Map<string, Copy>();
  #currentAt = 0;
  #failing = false;
  #looking = false;
  #lookAgain = false;
  #callOffTimer: () => void = () => undefined;
  #unlisten: (() => void) | undefined;
  #ended = false;

  constructor(ports: FollowingPorts) {
    this.#ports = ports;
  }

  has(key: string): boolean {
    return this.#copies.has(key);
  }

  async follow<Value>(key: string, read: (data: Json) => Value): Promise<Followed<Value>> {
    const copy = this.#copies.get(key) ?? this.#newCopy(key);
    // Counted before the wait: if the last other one closes meanwhile, the copy stays, and so does all that keeps it right.
    copy.beginning++;
    try {
      copy.first ??= this.#readFirst(copy);
      await copy.first;
      const follower = new Follower(this, this.#ports, copy, read);
      copy.followers.add(follower as Follower<unknown>);
      return follower;
    } finally {
      // The store may not have answered, and `read` may have refused what it has: then nobody needs the copy.
      copy.beginning--;
      this.#letGo(copy);
    }
  }

  leave(copy: Copy, follower: Follower<unknown>): void {
    copy.followers.delete(follower);
    this.#letGo(copy);
  }

  end(): void {
    this.#ended = true;
    this.#rest();
  }

  staleSince({ damaged }: Copy): number | null {
    if (damaged !== null) return damaged.since;
    return this.#failing ? this.#currentAt : null;
  }

  /** A resource as a commit of this process has left it. `undefined`: that is not known, and has to be read. */
  saw(key: string, record: StoredRecord | null | undefined): void {
    const copy = this.#copies.get(key);
    if (copy === undefined || record === null) return;
    if (record === undefined) this.look();
    else if (isNewer(record, copy.version)) this.#learn(copy, record);
  }

  /** A commit of this process has changed the resource's data. */
  changed(key: string): void {
    if (this.#copies.has(key)) this.look();
  }

  /** A value may have changed: looks now, or once more if it is looking. */
  look(): void {
    if (this.#ended || this.#copies.size === 0) return;
    this.#lookAgain = true;
    if (!this.#looking) void this.#lookRepeatedly();
  }

  #newCopy(key: string): Copy {
    if (this.#copies.size >= limits.followed)
      throw new JournalError("invalid-change", `a journal follows at most ${limits.followed} values`);
    const copy = new Copy(key);
    this.#copies.set(key, copy);
    if (this.#unlisten === undefined && !this.#ended) {
      this.#unlisten = this.#ports.store.onWake((what, key) => {
        if (what === "value" && (key === undefined || this.has(key))) this.look();
      });
      this.#currentAt = this.#ports.time.now();
      this.#lookLater();
    }
    return copy;
  }

  async #readFirst(copy: Copy): Promise<void> {
    try {
      await this.#ports.persist(() => this.#read(copy));
    } catch (error) {
      // Whoever comes next asks anew.
      copy.first = undefined;
      throw error;
    }
  }

  #letGo(copy: Copy): void {
    if (copy.followers.size > 0 || copy.beginning > 0) return;
    this.#copies.delete(copy.key);
    if (this.#copies.size === 0) this.#rest();
  }

  #rest(): void {
    this.#callOffTimer();
    this.#unlisten?.();
    this.#unlisten = undefined;
  }

  #lookLater(): void {
    const { clock, store } = this.#ports;
    const isInDoubt = this.#failing || [...this.#copies.values()].some(({ damaged }) => damaged?.version === null);
    const ms = store.pace.pollMs ?? (isInDoubt ? lookAgainMs : null);
    this.#callOffTimer();
    if (ms !== null && !this.#ended && this.#copies.size > 0) this.#callOffTimer = clock.after(ms, () => this.look());
  }

  async #lookRepeatedly(): Promise<void> {
    const { time, observe } = this.#ports;
    this.#looking = true;
    while (this.#lookAgain && !this.#ended) {
      this.#lookAgain = false;
      const askedAt = time.now();
      try {
        // An answer that comes after its time does no harm: what was learned meanwhile is newer, and stays.
        await this.#ports.within(this.#lookOnce());
        this.#currentAt = askedAt;
        if (this.#failing) observe({ kind: "store answered again", doing: "follow" });
        this.#failing = false;
      } catch (error) {
        if (!this.#failing && !this.#ended) observe({ kind: "store failed", doing: "follow", error });
        this.#failing = true;
      }
    }
    // In the same turn as the last look at `#lookAgain`: whoever sets it later finds that nobody looks, and begins.
    this.#looking = false;
    this.#lookLater();
  }

  async #lookOnce(): Promise<void> {
    const copies = [...this.#copies.values()];
    const before = copies.map(({ learned }) => learned);
    const versions = await this.#ports.store.versions(copies.map(({ key }) => key));
    const moved = copies.filter((copy, index) => {
      const version = versions.get(copy.key) ?? null;
      const { damaged } = copy;
      const isKnown =
        damaged === null ? isSame(version, copy.version) : damaged.version !== null && isSame(version, damaged.version);
      return copy.learned === before[index] && !isKnown;
    });
    await Promise.all(moved.map((copy) => this.#read(copy, versions.get(copy.key) ?? null)));
  }

  /** `at`: where the record was just before; `undefined`: nobody has looked. */
  async #read(copy: Copy, at?: Expected | null): Promise<void> {
    const { learned } = copy;
    let record: StoredRecord | null = null;
    try {
      record = (await this.#ports.store.read(copy.key, []))?.record ?? null;
      // What was read is older than what is known only if something was learned meanwhile.
      if (copy.learned === learned || (record !== null && isNewer(record, copy.version))) this.#learn(copy, record);
    } catch (error) {
      const code = error instanceof JournalError ? error.code : undefined;
      // It alone cannot be read: whoever follows it goes on with what was known.
      if (code === "unreadable") {
        const isTold = this.#damage(copy, record === null ? (at ?? null) : versionOf(record));
        if (!isTold) this.#ports.observe({ kind: "set aside", key: copy.key, error });
      } else if (code === "key-missing" && at !== undefined) {
        // A rotation makes it readable without moving it: it is read with every look.
        const isTold = this.#damage(copy, null);
        if (!isTold) this.#ports.observe({ kind: "store failed", doing: "follow", error });
      } else throw error;
    }
  }

  /** Answers whether that was told already, as far as is known. */
  #damage(copy: Copy, version: Expected | null): boolean {
    const { damaged } = copy;
    copy.damaged = { version, since: damaged?.since ?? this.#currentAt };
    return damaged !== null && damaged.version === null;
  }

  #learn(copy: Copy, record: StoredRecord | null): void {
    const data = record === null ? null : stateOf(record).data;
    const text = JSON.stringify(data);
    copy.learned++;
    copy.version = record && versionOf(record);
    copy.damaged = null;
    if (text === copy.text) return;
    copy.text = text;
    copy.data = frozen(JSON.parse(text) as Json);
    for (const follower of [...copy.followers]) follower.learn();
  }
}

class Follower<Value> implements Followed<Value> {
  readonly #following: Following;
  readonly #ports: FollowingPorts;
  readonly #copy: Copy;
  readonly #read: (data: Json) => Value;
  readonly #listeners = new Set<(value: Value, before: Value) => void>();
  #value: Value;
  /** What the store has makes no sense to `read`: since when. */
  #senselessSince: number | null = null;
  #closed = false;

  constructor(following: Following, ports: FollowingPorts, copy: Copy, read: (data: Json) => Value) {
    this.#following = following;
    this.#ports = ports;
    this.#copy = copy;
    this.#read = read;
    this.#value = frozen(read(copy.data));
  }

  get key(): string {
    return this.#copy.key;
  }

  get value(): Value {
    return this.#value;
  }

  get staleSince(): number | null {
    return this.#senselessSince ?? this.#following.staleSince(this.#copy);
  }

  async update(
    decide: (value: Value, now: number) => FollowedChange<Value> | undefined,
    { by, timeoutMs }: FollowedOptions,
  ): Promise<Value> {
    const decision: Decide<Value> = (resource, now) => {
      const before = frozen(this.#read(resource?.data ?? null));
      const change = decide(before, now);
      if (change === undefined) return { result: before };
      const text = toJsonText(change.value, limits.followedBytes, `the value ${JSON.stringify(this.key)}`);
      const data = JSON.parse(text) as Json;
      // Read back before it is written: what this process itself cannot read is no value.
      const result = frozen(this.#read(JSON.parse(text) as Json));
      return { result, change: { data, ...(change.entries && { entries: change.entries }) } };
    };
    return this.#ports.transact(this.key, decision, { by, ...(timeoutMs !== undefined && { timeoutMs }) });
  }

  onChange(listener: (value: Value, before: Value) => void): () => void {
    const entry = (value: Value, before: Value) => listener(value, before);
    this.#listeners.add(entry);
    return () => this.#listeners.delete(entry);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#listeners.clear();
    this.#following.leave(this.#copy, this as Follower<unknown>);
  }

  /** The copy's data has changed. */
  learn(): void {
    const before = this.#value;
    try {
      this.#value = frozen(this.#read(this.#copy.data));
      this.#senselessSince = null;
    } catch (error) {
      // A newer version may have written it. What is known stays.
      this.#senselessSince ??= this.#ports.time.now();
      this.#ports.observe({ kind: "store failed", doing: "follow", error });
      return;
    }
    for (const listener of [...this.#listeners]) {
      try {
        listener(this.#value, before);
      } catch {
        // Whoever listens cannot harm the others.
      }
    }
  }
}

function versionOf({ seq, epoch }: StoredRecord): Expected {
  return { seq, epoch };
}

function isSame(a: Expected | null, b: Expected | null): boolean {
  return a?.seq === b?.seq && a?.epoch === b?.epoch;
}

/** Neither seq nor epoch ever goes back, and a key that is used again begins at a higher epoch than it ever had. */
function isNewer({ seq, epoch }: StoredRecord, known: Expected | null): boolean {
  return known === null || epoch > known.epoch || (epoch === known.epoch && seq > known.seq);
}

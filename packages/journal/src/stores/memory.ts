import { steadyWallClock } from "../clock.js";
import type {
  BacklogRequest,
  Change,
  ClaimAnswer,
  ClaimRequest,
  CommitOutcome,
  EntryRange,
  Expected,
  Held,
  HeldPage,
  Label,
  PartRange,
  Query,
  Release,
  Store,
  StoredBacklog,
  StoredEntry,
  StoredPart,
  StoredRecord,
  StoredResource,
  TextReplacement,
  WakeListener,
  Woken,
  WorkPlace,
  WorkRange,
} from "../store.js";
import { setAsideLabel } from "../store.js";
import { leaseAfter } from "./lease-after.js";

export interface MemoryStoreOptions {
  /** The store's clock, in milliseconds since 1970. */
  readonly clock?: () => number;
}

/** Everything in this process's memory: for tests, and to read what a store has to do. Several journals may share one. */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  return new MemoryStore(options.clock ?? steadyWallClock());
}

interface Shelf {
  record: StoredRecord;
  readonly entries: Map<number, StoredEntry>;
  readonly parts: Map<string, string>;
  readonly labels: Map<string, Set<string>>;
}

class MemoryStore implements Store {
  readonly name = "memory";
  readonly pace = { leaseMs: 30_000, pollMs: null, reapMs: null };
  readonly #clock: () => number;
  readonly #shelves = new Map<string, Shelf>();
  readonly #living = new Set<string>();
  readonly #listeners = new Set<WakeListener>();

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  async open(): Promise<void> {}

  /** What it holds stays, as in a file: the store may be opened again. */
  async close(): Promise<void> {}

  async now(): Promise<number> {
    return this.#clock();
  }

  async read(key: string, parts: readonly string[]): Promise<StoredResource | undefined> {
    const shelf = this.#shelves.get(key);
    if (shelf === undefined) return undefined;
    const found = new Map<string, string>();
    for (const id of parts) {
      const body = shelf.parts.get(id);
      if (body !== undefined) found.set(id, body);
    }
    return { record: shelf.record, parts: found };
  }

  async versions(keys: readonly string[]): Promise<ReadonlyMap<string, Expected>> {
    const found = new Map<string, Expected>();
    for (const key of keys) {
      const record = this.#shelves.get(key)?.record;
      if (record !== undefined) found.set(key, { seq: record.seq, epoch: record.epoch });
    }
    return found;
  }

  async commit(change: Change): Promise<CommitOutcome> {
    const shelf = this.#shelves.get(change.key);
    if (!isAt(shelf, change.expected)) return { kind: "conflict" };
    const at = this.#clock();
    const target = shelf ?? emptyShelf(change);
    const before = target.record;
    const entries = change.entries.map((entry, index) => ({
      ...entry,
      seq: before.seq + 1 + index,
      at,
      token: change.token,
    }));
    target.record = {
      key: change.key,
      seq: before.seq + entries.length,
      epoch: change.epoch,
      state: change.state,
      lane: change.lane,
      ...leaseAfter(change, before),
    };
    for (const seq of change.deleteEntries) target.entries.delete(seq);
    for (const entry of entries) target.entries.set(entry.seq, entry);
    for (const id of change.deleteParts) target.parts.delete(id);
    for (const part of change.putParts) target.parts.set(part.id, part.body);
    for (const label of change.removeLabels) removeLabel(target, label);
    for (const label of change.addLabels) addLabel(target, label);
    this.#shelves.set(change.key, target);
    if (change.wake) this.#wake("work");
    if (change.followed) this.#wake("value", change.key);
    return { kind: "committed", at };
  }

  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const now = this.#clock();
    const room = new Map<string, number>();
    const roomOf = (lane: string) => room.get(lane) ?? request.rooms.get(lane) ?? request.laneRoom;
    const due = [...this.#shelves.values()].filter(({ record }) => record.dueAt !== null && roomOf(record.lane) > 0);
    due.sort((a, b) => (a.record.dueAt ?? 0) - (b.record.dueAt ?? 0));
    const claimed: StoredRecord[] = [];
    let nextDueAt: number | null = null;
    for (const shelf of due) {
      const { dueAt, lease, epoch, lane } = shelf.record;
      if (dueAt === null) continue;
      if (dueAt > now) {
        nextDueAt = Math.min(nextDueAt ?? dueAt, dueAt);
        break;
      }
      const running = lease !== null && lease.until > now;
      const mine = running && lease.owner === request.owner;
      // Its owner hears of what is due. If it is dead, nobody does: this store is not looked at again and again.
      if (running && !mine) nextDueAt = Math.min(nextDueAt ?? lease.until, lease.until);
      if ((running && !mine) || claimed.length >= request.limit || roomOf(lane) <= 0) continue;
      room.set(lane, roomOf(lane) - 1);
      const until = now + request.leaseMs;
      shelf.record = {
        ...shelf.record,
        lease: { owner: request.owner, until },
        dueAt: until,
        epoch: mine ? epoch : epoch + 1,
      };
      claimed.push(shelf.record);
    }
    return { now, claimed, nextDueAt };
  }

  async renew(owner: string, held: readonly Held[], leaseMs: number): Promise<readonly string[]> {
    const until = this.#clock() + leaseMs;
    const kept: string[] = [];
    for (const { key, epoch } of held) {
      const shelf = this.#heldBy(owner, key, epoch);
      if (shelf === undefined) continue;
      const { lease, dueAt } = shelf.record;
      shelf.record = { ...shelf.record, lease: { owner, until }, dueAt: dueAt === lease?.until ? until : dueAt };
      kept.push(key);
    }
    return kept;
  }

  async heldBy(owner: string, { after, limit }: HeldPage): Promise<readonly string[]> {
    return [...this.#shelves.values()]
      .filter(({ record }) => record.lease?.owner === owner && isAfter(record.key, after))
      .map(({ record }) => record.key)
      .sort(byBytes)
      .slice(0, limit);
  }

  async release(owner: string, held: readonly Release[]): Promise<void> {
    for (const { key, epoch, seq, dueAt } of held) {
      const shelf = this.#heldBy(owner, key, epoch);
      if (shelf === undefined || shelf.record.seq !== seq) continue;
      shelf.record = { ...shelf.record, lease: null, epoch: epoch + 1, dueAt: dueAt === "now" ? this.#clock() : dueAt };
    }
    // Other journals on this store have no other way to hear of it: they do not poll.
    this.#wake("work");
  }

  async attend(owner: string): Promise<void> {
    this.#living.add(owner);
  }

  async leave(owner: string): Promise<void> {
    this.#living.delete(owner);
  }

  async reap(): Promise<number> {
    let freed = 0;
    for (const shelf of this.#shelves.values()) {
      const { lease, epoch } = shelf.record;
      if (lease === null || this.#living.has(lease.owner)) continue;
      shelf.record = { ...shelf.record, lease: null, epoch: epoch + 1, dueAt: this.#clock() };
      freed++;
    }
    return freed;
  }

  async gone(owners: readonly string[]): Promise<readonly string[]> {
    return owners.filter((owner) => !this.#living.has(owner));
  }

  async entries(key: string, range: EntryRange): Promise<readonly StoredEntry[]> {
    const all = [...(this.#shelves.get(key)?.entries.values() ?? [])];
    switch (range.kind) {
      case "numbers":
        return all.filter((entry) => range.seqs.includes(entry.seq)).sort((a, b) => a.seq - b.seq);
      case "after":
        return all
          .filter((entry) => entry.seq > range.after)
          .sort((a, b) => a.seq - b.seq)
          .slice(0, range.limit);
      case "before":
        return all
          .filter((entry) => entry.seq < range.before)
          .sort((a, b) => b.seq - a.seq)
          .slice(0, range.limit);
      case "settled":
        return all.filter(({ kind, operation }) => kind === "settled" && operation === range.operation);
    }
  }

  async parts(key: string, range: PartRange): Promise<readonly StoredPart[]> {
    const all = [...(this.#shelves.get(key)?.parts ?? [])].map(([id, body]) => ({ id, body }));
    return all
      .filter(({ id }) => id.startsWith(range.prefix) && isAfter(id, range.after))
      .sort((a, b) => byBytes(a.id, b.id))
      .slice(0, range.limit);
  }

  async find(query: Query): Promise<readonly StoredRecord[]> {
    if (query.work !== undefined) return this.#withWork(query.work, query.limit);
    const { label, prefix = "", after, limit } = query;
    return [...this.#shelves.values()]
      .filter((shelf) => label === undefined || shelf.labels.get(label.name)?.has(label.value))
      .map((shelf) => shelf.record)
      .filter(({ key }) => key.startsWith(prefix) && isAfter(key, after))
      .sort((a, b) => byBytes(a.key, b.key))
      .slice(0, limit);
  }

  async backlog({ limit, sample }: BacklogRequest): Promise<StoredBacklog> {
    const now = this.#clock();
    const records = [...this.#shelves.values()].map(({ record }) => record);
    const inLanes = new Map<string, StoredRecord[]>();
    for (const record of records) {
      if (record.dueAt === null || record.lane === "") continue;
      const others = inLanes.get(record.lane);
      if (others === undefined) inLanes.set(record.lane, [record]);
      else others.push(record);
    }
    const lanes = [...inLanes].map(([lane, open]) => {
      open.sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0));
      const due = open.filter(({ dueAt }) => (dueAt ?? 0) <= now).length;
      const counted = { due: Math.min(due, limit), later: Math.min(open.length - due, limit) };
      return { lane, ...counted, sample: open.slice(0, sample) };
    });
    const leased = Math.min(limit, records.filter(({ lease }) => lease !== null).length);
    return { now, lanes: lanes.sort((a, b) => byBytes(a.lane, b.lane)), leased };
  }

  async remove(key: string, expected: Expected): Promise<boolean> {
    if (!isAt(this.#shelves.get(key), expected)) return false;
    return this.#shelves.delete(key);
  }

  async setAside(key: string): Promise<void> {
    const shelf = this.#shelves.get(key);
    if (shelf === undefined) return;
    shelf.record = { ...shelf.record, dueAt: null, lease: null, epoch: shelf.record.epoch + 1 };
    addLabel(shelf, setAsideLabel);
  }

  async restore(key: string): Promise<void> {
    const shelf = this.#shelves.get(key);
    if (shelf?.labels.get(setAsideLabel.name)?.delete(setAsideLabel.value))
      shelf.record = { ...shelf.record, dueAt: this.#clock() };
  }

  async replaceTexts(key: string, replacements: readonly TextReplacement[]): Promise<number> {
    const shelf = this.#shelves.get(key);
    return shelf === undefined ? 0 : replacements.filter((replacement) => replaceText(shelf, replacement)).length;
  }

  onWake(listener: WakeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #wake(what: Woken, key?: string): void {
    for (const listener of this.#listeners) queueMicrotask(() => listener(what, key));
  }

  #withWork({ lane, after }: WorkRange, limit: number): readonly StoredRecord[] {
    const isWanted = (record: StoredRecord) =>
      record.dueAt !== null && (lane === null ? record.lane !== "" : record.lane === lane);
    return [...this.#shelves.values()]
      .map(({ record }) => record)
      .filter((record) => isWanted(record) && (after === null || byWork(placeOf(record), after) > 0))
      .sort((a, b) => byWork(placeOf(a), placeOf(b)))
      .slice(0, limit);
  }

  #heldBy(owner: string, key: string, epoch: number): Shelf | undefined {
    const shelf = this.#shelves.get(key);
    return shelf?.record.lease?.owner === owner && shelf.record.epoch === epoch ? shelf : undefined;
  }
}

function emptyShelf({ key, state, lane }: Change): Shelf {
  return {
    record: { key, seq: 0, epoch: 0, state, lane, dueAt: null, lease: null },
    entries: new Map(),
    parts: new Map(),
    labels: new Map(),
  };
}

function isAt(shelf: Shelf | undefined, expected: Expected | null): boolean {
  if (shelf === undefined) return expected === null;
  return expected !== null && shelf.record.seq === expected.seq && shelf.record.epoch === expected.epoch;
}

function replaceText(shelf: Shelf, { place, from, to }: TextReplacement): boolean {
  switch (place.kind) {
    case "state":
      if (shelf.record.seq !== place.seq || shelf.record.state !== from) return false;
      shelf.record = { ...shelf.record, state: to };
      return true;
    case "part":
      if (shelf.parts.get(place.id) !== from) return false;
      shelf.parts.set(place.id, to);
      return true;
    case "entry": {
      const entry = shelf.entries.get(place.seq);
      if (entry?.body !== from) return false;
      shelf.entries.set(place.seq, { ...entry, body: to });
      return true;
    }
  }
}

function addLabel(shelf: Shelf, { name, value }: Label): void {
  const values = shelf.labels.get(name) ?? new Set();
  shelf.labels.set(name, values.add(value));
}

function removeLabel(shelf: Shelf, { name, value }: Label): void {
  shelf.labels.get(name)?.delete(value);
}

function placeOf({ lane, dueAt, key }: StoredRecord): WorkPlace {
  return { lane, dueAt: dueAt ?? 0, key };
}

function byWork(a: WorkPlace, b: WorkPlace): number {
  return byBytes(a.lane, b.lane) || a.dueAt - b.dueAt || byBytes(a.key, b.key);
}

function isAfter(text: string, after: string | null): boolean {
  return after === null || byBytes(text, after) > 0;
}

/** The order of UTF-8 bytes, which every store shares; JavaScript's own order differs beyond the basic plane. */
function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

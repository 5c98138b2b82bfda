import { JournalError } from "../errors.js";
import { keyRegisterKey } from "../names.js";
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
  Pace,
  PartRange,
  Query,
  Release,
  Store,
  StoredBacklog,
  StoredEntry,
  StoredPart,
  StoredRecord,
  StoredResource,
  TextPlace,
  TextReplacement,
  WakeListener,
} from "../store.js";
import { registerActiveKey } from "./key-register.js";
import { type KeyRing, keysOf } from "./key-ring.js";
import { type Rotation, type RotationOptions, rotate } from "./rotation.js";
import { nameOf, type Opened, type Place, TextCipher } from "./text-cipher.js";

export interface EncryptionOptions {
  /**
   * Whether texts that are not encrypted are read, as those from before there was encryption. Default true. Once a rotation has left none,
   * `false` keeps whoever can write to the database from putting texts of their own there.
   */
  readonly acceptPlain?: boolean;
}

/** A store that keeps its texts encrypted. */
export interface EncryptedStore extends Store {
  /**
   * Encrypts every text under the active key that is not yet, while this and other processes work on the store. It may be killed or
   * aborted at any time and run again. Must be called between `open` and `close`.
   */
  rotate(options?: RotationOptions): Promise<Rotation>;
}

/**
 * Keeps all texts of a store (states, parts, entries: parameters, credentials, results) encrypted with AES-256-GCM. Keys, labels, lanes,
 * times, the kinds of entries and the ids of operations and parts stay readable: no secrets there.
 *
 * `open` refuses a ring that lacks a key in use (`key-missing`), or has another one under its id (`key-wrong`). A text that was altered
 * or moved is `unreadable`, as a damaged one is; one whose key is missing is `key-missing`, and never taken for damaged.
 */
export function encryptedStore(store: Store, keyRing: KeyRing, options: EncryptionOptions = {}): EncryptedStore {
  return new CipherStore(store, new TextCipher(keysOf(keyRing), keyRing.active), options.acceptPlain ?? true);
}

/** What cannot be read under a key that is missing here is left to others for so long. */
const leftToOthersMs = 1_000;

class CipherStore implements EncryptedStore {
  readonly #store: Store;
  readonly #cipher: TextCipher;
  readonly #acceptPlain: boolean;
  readonly #opened = new WeakMap<StoredRecord, StoredRecord>();

  constructor(store: Store, cipher: TextCipher, acceptPlain: boolean) {
    this.#store = store;
    this.#cipher = cipher;
    this.#acceptPlain = acceptPlain;
  }

  get name(): string {
    return this.#store.name;
  }

  get pace(): Pace {
    return this.#store.pace;
  }

  async open(): Promise<void> {
    await this.#store.open();
    try {
      await registerActiveKey(this.#store, this.#cipher);
    } catch (error) {
      // What is wrong with the keys matters more than a close that fails.
      await this.#store.close().catch(() => undefined);
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  now(): Promise<number> {
    return this.#store.now();
  }

  rotate(options: RotationOptions = {}): Promise<Rotation> {
    return rotate(this.#store, this.#cipher, options);
  }

  async read(key: string, parts: readonly string[]): Promise<StoredResource | undefined> {
    if (key === keyRegisterKey) return undefined;
    const found = await this.#store.read(key, parts);
    if (found === undefined) return undefined;
    const bodies = new Map<string, string>();
    for (const [id, body] of found.parts) bodies.set(id, this.#text(body, { kind: "part", key, id }));
    return { record: this.#record(found.record), parts: bodies };
  }

  versions(keys: readonly string[]): Promise<ReadonlyMap<string, Expected>> {
    return this.#store.versions(keys.filter((key) => key !== keyRegisterKey));
  }

  async commit(change: Change): Promise<CommitOutcome> {
    const { key, entries, putParts } = change;
    if (key === keyRegisterKey) throw new JournalError("invalid-key", `${JSON.stringify(key)} is the journal's own`);
    const before = change.expected?.seq ?? 0;
    return this.#store.commit({
      ...change,
      state: this.#cipher.seal(change.state, { kind: "state", key, seq: before + entries.length }),
      entries: entries.map((entry, index) => {
        const place: Place = { kind: "entry", key, seq: before + 1 + index, entryKind: entry.kind };
        return { ...entry, body: this.#cipher.seal(entry.body, place) };
      }),
      putParts: putParts.map(({ id, body }) => ({ id, body: this.#cipher.seal(body, { kind: "part", key, id }) })),
    });
  }

  /**
   * One that was encrypted under a key that is not here (another process has been given a newer ring) is given back at once, for whoever
   * has the key. It is told as an error only if there is nothing else, so that it holds nothing up.
   */
  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const { now, claimed, nextDueAt } = await this.#store.claim(request);
    const readable: StoredRecord[] = [];
    const locked: { readonly record: StoredRecord; readonly error: JournalError }[] = [];
    for (const record of claimed) {
      const opened = this.#open(record.state, placeOfState(record));
      if (opened.kind === "locked") locked.push({ record, error: opened.error });
      else readable.push({ ...record, state: stateText(opened) });
    }
    const [first] = locked;
    if (first === undefined) return { now, claimed: readable, nextDueAt };
    const dueAt = now + leftToOthersMs;
    await this.#store.release(
      request.owner,
      locked.map(({ record: { key, epoch, seq } }) => ({ key, epoch, seq, dueAt })),
    );
    if (readable.length === 0) throw first.error;
    return { now, claimed: readable, nextDueAt: Math.min(nextDueAt ?? dueAt, dueAt) };
  }

  renew(owner: string, held: readonly Held[], leaseMs: number): Promise<readonly string[]> {
    return this.#store.renew(owner, held, leaseMs);
  }

  heldBy(owner: string, page: HeldPage): Promise<readonly string[]> {
    return this.#store.heldBy(owner, page);
  }

  release(owner: string, held: readonly Release[]): Promise<void> {
    return this.#store.release(owner, held);
  }

  attend(owner: string, lost: () => void): Promise<void> {
    return this.#store.attend(owner, lost);
  }

  leave(owner: string): Promise<void> {
    return this.#store.leave(owner);
  }

  reap(owner: string): Promise<number> {
    return this.#store.reap(owner);
  }

  gone(owners: readonly string[]): Promise<readonly string[]> {
    return this.#store.gone(owners);
  }

  async entries(key: string, range: EntryRange): Promise<readonly StoredEntry[]> {
    if (key === keyRegisterKey) return [];
    const found = await this.#store.entries(key, range);
    return found.map((entry) => ({ ...entry, body: this.#text(entry.body, placeOfEntry(key, entry)) }));
  }

  async parts(key: string, range: PartRange): Promise<readonly StoredPart[]> {
    if (key === keyRegisterKey) return [];
    const found = await this.#store.parts(key, range);
    return found.map(({ id, body }) => ({ id, body: this.#text(body, { kind: "part", key, id }) }));
  }

  /** The register is left out, and a page on which it stood is as long as any other. */
  async find(query: Query): Promise<readonly StoredRecord[]> {
    const found = await this.#store.find(mayHoldRegister(query) ? { ...query, limit: query.limit + 1 } : query);
    const own = found.filter(({ key }) => key !== keyRegisterKey).slice(0, query.limit);
    return own.map((record) => (query.mayBeLocked && this.#isLocked(record) ? record : this.#record(record)));
  }

  /** A sample that cannot be read under the keys at hand is left out: whoever watches must not be held up by it. */
  async backlog(request: BacklogRequest): Promise<StoredBacklog> {
    const { lanes, ...rest } = await this.#store.backlog(request);
    const readable = (record: StoredRecord) => {
      const opened = this.#open(record.state, placeOfState(record));
      return opened.kind === "locked" ? [] : [{ ...record, state: stateText(opened) }];
    };
    return { ...rest, lanes: lanes.map((lane) => ({ ...lane, sample: lane.sample.flatMap(readable) })) };
  }

  async remove(key: string, expected: Expected): Promise<boolean> {
    return key !== keyRegisterKey && this.#store.remove(key, expected);
  }

  async setAside(key: string): Promise<void> {
    if (key !== keyRegisterKey) await this.#store.setAside(key);
  }

  async restore(key: string): Promise<void> {
    if (key !== keyRegisterKey) await this.#store.restore(key);
  }

  /** One after the other: what stands there has to be read to know whether it says the same. */
  async replaceTexts(key: string, replacements: readonly TextReplacement[]): Promise<number> {
    let replaced = 0;
    for (const { place, from, to } of replacements) {
      const stored = await this.#stored(key, place);
      if (stored === undefined || key === keyRegisterKey || this.#text(stored.text, stored.place) !== from) continue;
      replaced += await this.#store.replaceTexts(key, [
        { place, from: stored.text, to: this.#cipher.seal(to, stored.place) },
      ]);
    }
    return replaced;
  }

  onWake(listener: WakeListener): () => void {
    return this.#store.onWake(listener);
  }

  async #stored(key: string, place: TextPlace): Promise<{ readonly text: string; readonly place: Place } | undefined> {
    switch (place.kind) {
      case "state": {
        const record = (await this.#store.read(key, []))?.record;
        return record?.seq !== place.seq ? undefined : { text: record.state, place: placeOfState(record) };
      }
      case "part": {
        const text = (await this.#store.read(key, [place.id]))?.parts.get(place.id);
        return text === undefined ? undefined : { text, place: { kind: "part", key, id: place.id } };
      }
      case "entry": {
        const [entry] = await this.#store.entries(key, { kind: "numbers", seqs: [place.seq] });
        return entry && { text: entry.body, place: placeOfEntry(key, entry) };
      }
    }
  }

  #open(text: string, place: Place): Opened {
    const opened = this.#cipher.open(text, place);
    return opened.kind === "plain" && !this.#acceptPlain ? { kind: "broken", keyId: null } : opened;
  }

  #text(text: string, place: Place): string {
    const opened = this.#open(text, place);
    if (opened.kind === "locked") throw opened.error;
    if (opened.kind === "broken") throw new JournalError("unreadable", `${nameOf(place)} ${notAuthentic}`);
    return opened.text;
  }

  #isLocked(record: StoredRecord): boolean {
    return !this.#opened.has(record) && this.#open(record.state, placeOfState(record)).kind === "locked";
  }

  /** A store may answer the same record again and again: it is decrypted once, and stays the same. */
  #record(record: StoredRecord): StoredRecord {
    const known = this.#opened.get(record);
    if (known !== undefined) return known;
    const opened = this.#open(record.state, placeOfState(record));
    if (opened.kind === "locked") throw opened.error;
    const readable = { ...record, state: stateText(opened) };
    this.#opened.set(record, readable);
    return readable;
  }
}

const notAuthentic = "is not what was stored there: it was altered, moved or damaged";

/** What is broken is given as a text that is no JSON: the journal then sets that one resource aside, and the others are found. */
function stateText(opened: Exclude<Opened, { readonly kind: "locked" }>): string {
  return opened.kind === "broken" ? notAuthentic : opened.text;
}

function placeOfState({ key, seq }: StoredRecord): Place {
  return { kind: "state", key, seq };
}

function placeOfEntry(key: string, { seq, kind }: StoredEntry): Place {
  return { kind: "entry", key, seq, entryKind: kind };
}

function mayHoldRegister({ label, prefix = "", after }: Query): boolean {
  // The order of code units will do: the register's key is ASCII, and what starts like it is before or behind it in both orders.
  return label === undefined && keyRegisterKey.startsWith(prefix) && (after === null || after < keyRegisterKey);
}

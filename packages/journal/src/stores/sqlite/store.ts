import { steadyWallClock } from "../../clock.js";
import { JournalError } from "../../errors.js";
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
  PartRange,
  Query,
  Release,
  StoredBacklog,
  StoredEntry,
  StoredPart,
  StoredRecord,
  StoredResource,
  TextReplacement,
  WakeListener,
  Woken,
} from "../../store.js";
import { type Batcher, batcher } from "../batch.js";
import { type Cell, putChange, weightOf } from "./change-cells.js";
import { openForReading } from "./connection.js";
import { errorOf, failureOf } from "./failure.js";
import type { SqliteStats, SqliteStore, SqliteStoreOptions } from "./options.js";
import { takeOwnership } from "./owner.js";
import { canonicalPath } from "./private-file.js";
import type { OtherRequest, Request, WriterAnswer } from "./protocol.js";
import { Reader } from "./reader.js";
import { Recent } from "./recent.js";
import { replacementsWeight } from "./replace-texts.js";
import { checkSchema } from "./schema.js";
import { WriterThread } from "./writer-thread.js";

/** So much goes with one transaction at most: enough to make the durable write cheap, little enough to answer soon. */
const mostRequests = 512;
const mostBytes = 4_194_304;

/** While one batch is written, the next is already on its way. */
const underWay = 2;

/** What a request was answered, and the time that it was carried out at. */
interface Settled {
  readonly answer: WriterAnswer;
  readonly now: number;
}

interface Opened {
  readonly clock: () => number;
  readonly reader: Reader;
  readonly recent: Recent;
  readonly writer: WriterThread;
  readonly group: Batcher<Request, Settled>;
  readonly letGo: () => void;
}

/** The store on the main thread: reads by itself, and hands what changes something to the writer thread in batches. */
export class EmbeddedStore implements SqliteStore {
  readonly name = "sqlite";
  /** No other process can have committed work, and owners die with this process: there is nothing to poll for. */
  readonly pace = { leaseMs: 30_000, pollMs: null, reapMs: null };
  readonly #path: string;
  readonly #options: SqliteStoreOptions;
  readonly #living = new Set<string>();
  readonly #listeners = new Set<WakeListener>();
  #opened: Opened | undefined;
  #woken: { readonly what: Woken; readonly key: string | undefined }[] = [];
  #requests = 0;
  #transactions = 0;

  constructor(path: string, options: SqliteStoreOptions) {
    if (path === ":memory:" || path === "") {
      throw new Error(
        "sqliteStore keeps its journal in a file; for one in memory use memoryStore from @osbert/journal/memory",
      );
    }
    this.#path = path;
    this.#options = options;
  }

  stats(): SqliteStats {
    return { requests: this.#requests, transactions: this.#transactions };
  }

  async open(): Promise<void> {
    const undo: (() => void | Promise<void>)[] = [];
    try {
      const path = canonicalPath(this.#path);
      // Ownership comes before everything else: whoever is refused must not have looked into the file, let alone
      // changed it.
      const { lockFile, letGo } = takeOwnership(path);
      undo.push(letGo);
      // On a connection that cannot write: a file that is not for us must stay as it is.
      inspect(path);
      const { clock, synchronous = "full", maxPages = null } = this.#options;
      const writer = new WriterThread({ path, lockFile, synchronous, maxPages, marksClock: clock === undefined });
      // The writer brings the schema up to date, so reading starts after it.
      const steady = steadyWallClock(await writer.start());
      undo.push(() => writer.close());
      const reader = new Reader(openForReading(path));
      const recent = new Recent();
      const group = this.#groupFor(writer, clock ?? steady, recent);
      this.#opened = { clock: clock ?? steady, reader, recent, writer, group, letGo };
    } catch (error) {
      for (const step of undo.reverse()) await step();
      throw asJournalError(error, this.#path);
    }
  }

  async close(): Promise<void> {
    const opened = this.#opened;
    if (opened === undefined) return;
    this.#opened = undefined;
    await opened.group.idle();
    // The reader first: only a writer that is the last on the file can put the log into it and remove it.
    opened.reader.close();
    await opened.writer.close();
    // Last: until here the file was still written to.
    opened.letGo();
    this.#living.clear();
  }

  async now(): Promise<number> {
    return this.#use().clock();
  }

  async read(key: string, parts: readonly string[]): Promise<StoredResource | undefined> {
    return this.#read((reader) => this.#use().recent.read(key, parts, () => reader.read(key, parts)));
  }

  async versions(keys: readonly string[]): Promise<ReadonlyMap<string, Expected>> {
    return this.#read((reader) => reader.versions(keys));
  }

  async entries(key: string, range: EntryRange): Promise<readonly StoredEntry[]> {
    return this.#read((reader) => reader.entries(key, range));
  }

  async parts(key: string, range: PartRange): Promise<readonly StoredPart[]> {
    return this.#read((reader) => reader.parts(key, range));
  }

  async find(query: Query): Promise<readonly StoredRecord[]> {
    return this.#read((reader) => reader.find(query));
  }

  async backlog(request: BacklogRequest): Promise<StoredBacklog> {
    return this.#read((reader) => reader.backlog(request, this.#use().clock()));
  }

  async commit(change: Change): Promise<CommitOutcome> {
    const { answer, now } = carriedOut(await this.#use().group.add({ kind: "commit", change }));
    if (answer !== true) return { kind: "conflict" };
    if (change.wake) this.#wake("work");
    if (change.followed) this.#wake("value", change.key);
    return { kind: "committed", at: now };
  }

  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const { owner, leaseMs, limit, laneRoom, rooms } = request;
    return (await this.#ask({ kind: "claim", owner, leaseMs, limit, laneRoom, rooms })).answer as ClaimAnswer;
  }

  async renew(owner: string, held: readonly Held[], leaseMs: number): Promise<readonly string[]> {
    if (held.length === 0) return [];
    const asked = held.map(({ key, epoch }) => ({ key, epoch }));
    return (await this.#ask({ kind: "renew", owner, held: asked, leaseMs })).answer as readonly string[];
  }

  async heldBy(owner: string, page: HeldPage): Promise<readonly string[]> {
    return this.#read((reader) => reader.heldBy(owner, page));
  }

  async release(owner: string, held: readonly Release[]): Promise<void> {
    if (held.length === 0) return;
    const asked = held.map(({ key, epoch, seq, dueAt }) => ({ key, epoch, seq, dueAt }));
    await this.#ask({ kind: "release", owner, held: asked });
    this.#wake("work");
  }

  /** Owners live and die with this process, so `lost` is never called. */
  async attend(owner: string, _lost: () => void): Promise<void> {
    this.#living.add(owner);
  }

  async leave(owner: string): Promise<void> {
    this.#living.delete(owner);
  }

  /** The file has one owner process, and this is it: whoever does not attend here is dead. */
  async reap(_owner: string): Promise<number> {
    const freed = (await this.#ask({ kind: "reap", living: [...this.#living] })).answer as number;
    if (freed > 0) this.#wake("work");
    return freed;
  }

  async gone(owners: readonly string[]): Promise<readonly string[]> {
    return owners.filter((owner) => !this.#living.has(owner));
  }

  async remove(key: string, { seq, epoch }: Expected): Promise<boolean> {
    return (await this.#ask({ kind: "remove", key, expected: { seq, epoch } })).answer as boolean;
  }

  async setAside(key: string): Promise<void> {
    await this.#ask({ kind: "set aside", key });
  }

  async restore(key: string): Promise<void> {
    await this.#ask({ kind: "restore", key });
    this.#wake("work");
  }

  async replaceTexts(key: string, replacements: readonly TextReplacement[]): Promise<number> {
    if (replacements.length === 0) return 0;
    return (await this.#ask({ kind: "replace texts", key, replacements })).answer as number;
  }

  onWake(listener: WakeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** For all that makes something due, and for values: other journals on this store do not poll and hear of it in no other way. */
  #wake(what: Woken, key?: string): void {
    if (what === "work" && this.#woken.some((woken) => woken.what === "work")) return;
    this.#woken.push({ what, key });
    // One turn for all that a batch brings about: a task for each commit and listener costs as much as its answer.
    if (this.#woken.length === 1) queueMicrotask(() => this.#tellWoken());
  }

  #tellWoken(): void {
    const woken = this.#woken;
    this.#woken = [];
    for (const listener of this.#listeners) for (const { what, key } of woken) listener(what, key);
  }

  #use(): Opened {
    if (this.#opened === undefined) throw new JournalError("stopped", `the store on ${this.#path} is not open`);
    return this.#opened;
  }

  #read<T>(read: (reader: Reader) => T): T {
    const { reader } = this.#use();
    try {
      return read(reader);
    } catch (error) {
      throw asJournalError(error, this.#path);
    }
  }

  async #ask(request: Request): Promise<Settled> {
    return carriedOut(await this.#use().group.add(request));
  }

  #groupFor(writer: WriterThread, clock: () => number, recent: Recent): Batcher<Request, Settled> {
    const run = async (requests: readonly Request[]): Promise<readonly Settled[]> => {
      const items: (Cell | OtherRequest)[] = [];
      for (const request of requests) {
        recent.begin(request);
        if (request.kind === "commit") putChange(items, request.change);
        else items.push(request);
      }
      const now = clock();
      const { answers, transactions } = await writer.run({ kind: "batch", now, items }).catch((error: unknown) => {
        // Nobody knows what of it was carried out.
        for (const request of requests) recent.note(request, undefined);
        throw error;
      });
      for (const [index, request] of requests.entries()) recent.note(request, answers[index]);
      this.#requests += requests.length;
      this.#transactions += transactions;
      return answers.map((answer) => ({ answer, now }));
    };
    return batcher({ run, maxItems: mostRequests, maxWeight: mostBytes, weightOf: requestWeight, inFlight: underWay });
  }
}

function carriedOut(settled: Settled): Settled {
  if (typeof settled.answer === "object" && "failed" in settled.answer) throw errorOf(settled.answer.failed);
  return settled;
}

function requestWeight(request: Request): number {
  if (request.kind === "commit") return weightOf(request.change);
  return request.kind === "replace texts" ? replacementsWeight(request.replacements) : 1_000;
}

/** Throws if the file holds what this store must not touch. */
function inspect(path: string): void {
  const database = openForReading(path);
  try {
    checkSchema(database, path);
  } finally {
    database.close();
  }
}

function asJournalError(error: unknown, path: string): JournalError {
  return error instanceof JournalError ? error : errorOf(failureOf(error, path));
}

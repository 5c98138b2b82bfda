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

/**
 * Fewer than this go together in any case. More go as two batches, so that what follows from one is made ready while the other is written,
 * if a durable write takes less than the making ready: at least so much for each. On a slow disk it does not, and one write serves all.
 */
const fewestToAlternate = 16;
const readiedInMs = 0.05;
const shortestFlushMs = 0.001;

/** An answer of the writer, but to a commit, which is answered as the contract says: commits are nearly all of the traffic. */
type Answer = Exclude<WriterAnswer, { readonly failed: unknown }>;

interface Opened {
  readonly clock: () => number;
  readonly reader: Reader;
  readonly recent: Recent;
  readonly writer: WriterThread;
  readonly group: Batcher<Request, CommitOutcome | Answer>;
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
  /** How long a durable write takes here. */
  #flushMs = Number.POSITIVE_INFINITY;

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

  commit(change: Change): Promise<CommitOutcome> {
    return this.#ask<CommitOutcome>({ kind: "commit", change });
  }

  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const { owner, leaseMs, limit, laneRoom, rooms } = request;
    return this.#ask<ClaimAnswer>({ kind: "claim", owner, leaseMs, limit, laneRoom, rooms });
  }

  async renew(owner: string, held: readonly Held[], leaseMs: number): Promise<readonly string[]> {
    if (held.length === 0) return [];
    const asked = held.map(({ key, epoch }) => ({ key, epoch }));
    return this.#ask<readonly string[]>({ kind: "renew", owner, held: asked, leaseMs });
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
    const freed = await this.#ask<number>({ kind: "reap", living: [...this.#living] });
    if (freed > 0) this.#wake("work");
    return freed;
  }

  async gone(owners: readonly string[]): Promise<readonly string[]> {
    return owners.filter((owner) => !this.#living.has(owner));
  }

  async remove(key: string, { seq, epoch }: Expected): Promise<boolean> {
    return this.#ask<boolean>({ kind: "remove", key, expected: { seq, epoch } });
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
    return this.#ask<number>({ kind: "replace texts", key, replacements });
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

  /** Each kind of request has its kind of answer. Not an async function: every commit comes by here. */
  #ask<Expected extends CommitOutcome | Answer>(request: Request): Promise<Expected> {
    try {
      return this.#use().group.add(request) as Promise<Expected>;
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  #groupFor(writer: WriterThread, clock: () => number, recent: Recent): Opened["group"] {
    const run = async (requests: readonly Request[]): Promise<readonly (CommitOutcome | Answer | Error)[]> => {
      const items: (Cell | OtherRequest)[] = [];
      for (const request of requests) {
        recent.begin(request);
        if (request.kind === "commit") putChange(items, request.change);
        else items.push(request);
      }
      const now = clock();
      const { answers, transactions, flushMs } = await writer
        .run({ kind: "batch", now, items })
        .catch((error: unknown) => {
          // Nobody knows what of it was carried out.
          for (const request of requests) recent.note(request, undefined);
          throw error;
        });
      for (const [index, request] of requests.entries()) recent.note(request, answers[index]);
      this.#requests += requests.length;
      this.#transactions += transactions;
      // What it takes when nothing else is in its way; what was measured once is believed less and less.
      if (transactions > 0) this.#flushMs = Math.max(shortestFlushMs, Math.min(flushMs, this.#flushMs * 1.05));
      const committed: CommitOutcome = { kind: "committed", at: now };
      return answers.map((answer, index) => {
        if (typeof answer === "object" && "failed" in answer) return errorOf(answer.failed);
        const request = requests[index];
        if (request?.kind !== "commit") return answer;
        if (answer !== true) return conflict;
        if (request.change.wake) this.#wake("work");
        if (request.change.followed) this.#wake("value", request.change.key);
        return committed;
      });
    };
    return batcher({
      run,
      maxItems: mostRequests,
      maxWeight: mostBytes,
      weightOf: requestWeight,
      inFlight: underWay,
      alternates: (ready) => ready >= fewestToAlternate && this.#flushMs < ready * readiedInMs,
    });
  }
}

const conflict: CommitOutcome = { kind: "conflict" };

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

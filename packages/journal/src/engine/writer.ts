import type { Clock } from "../clock.js";
import { nextDelayMs } from "../decisions/backoff.js";
import { Draft } from "../decisions/draft.js";
import { NeedsParts } from "../decisions/draft-parts.js";
import type { Kinds } from "../decisions/kind.js";
import type { Moment } from "../decisions/operation-state.js";
import { queuePrefix } from "../decisions/queue.js";
import type { Retention } from "../decisions/retention.js";
import { laneOf, mayBePassedOver, passedOverLabel } from "../decisions/schedule.js";
import { JournalError } from "../errors.js";
import { limits } from "../limits.js";
import { behindReserved, isReserved } from "../names.js";
import type { Observe } from "../observe.js";
import type { OpenOperation } from "../operation.js";
import { emptyState, type ResourceState, stateOf } from "../state.js";
import type { Change, CommitOutcome, Label, Lease, Store, StoredPart, StoredRecord } from "../store.js";
import type { Cell, Snapshot } from "./cell.js";
import { type Behind, operationsIn, readWithQueue } from "./read-with-queue.js";
import type { StoreTime } from "./time.js";

/** What is drafted from: the resource as it is, and the texts of the parts that were read. */
export interface Seen extends Moment {
  readonly snapshot: Snapshot | null;
  readonly parts: ReadonlyMap<string, string | null>;
  /** Operations behind those in the record, as far as they were asked for. */
  readonly behind: readonly OpenOperation[];
  /** Whether that is all of them. */
  readonly hasQueue: boolean;
  /** The change was tried before, may have come to be, and brought no entry that would tell: the decision has to see that by itself. */
  readonly mayBeMade: boolean;
}

/** What came of deciding on a change: the answer to who asked, and what is to be written. */
export interface DraftedChange<Result> {
  readonly result: Result;
  /** Nothing is written if it is missing or empty. */
  readonly draft?: Draft;
  /** Asked just before the commit, about the state that the draft leads to. */
  readonly tenure?: (draft: Draft, seen: Seen) => Tenure;
}

/** Who runs the resource from the commit on, and when someone must look at it. */
export interface Tenure {
  readonly lease: Lease | null | "keep";
  readonly raisesEpoch: boolean;
  readonly dueAt: number | null | "keep";
  readonly wake: boolean;
}

export interface WriteOptions {
  /** Parts that the decision wants to see. */
  readonly parts?: readonly string[];
  /** Prefixes of ids: all parts under them are wanted, too. */
  readonly partsUnder?: readonly string[];
  /** The resource most likely does not exist: decide on that first and read only if it turns out wrong. */
  readonly likelyNew?: boolean;
  /** Which operations behind those in the record it wants to see. */
  readonly behind?: Behind;
  /** When to give up, on the monotonic clock; `undefined`: never. */
  readonly giveUpAt?: number | undefined;
  /** Answers an error to give up with, while the store does not answer. */
  readonly mayGoOn?: () => JournalError | undefined;
  readonly beforeCommit?: () => void;
  /** Asked after the last look at the resource and before its commit; rejects if nothing may be written. */
  readonly confirm?: () => Promise<void>;
}

export interface WriterPorts {
  readonly store: Store;
  readonly clock: Clock;
  readonly time: StoreTime;
  readonly kinds: Kinds;
  readonly retention: Retention;
  readonly maxOpen: number;
  readonly random: () => number;
  readonly token: () => string;
  readonly observe: Observe;
  /** Whether this process has a copy of the resource's data: others may have one, too. */
  readonly isFollowed: (key: string) => boolean;
  /** Nothing is tried again any more. */
  readonly isStopped: () => boolean;
  /** Whether nothing begins in a lane. */
  readonly isPaused: (lane: string) => boolean;
}

/** Parts that are read in one go. */
const partsPage = 200;
/** Operations that wait, and are read to fill the record up with a few of them. */
const mostToRefill = 1_000;
const backoff = { firstMs: 20, factor: 2, longestMs: 1_000 };
/** After so many conflicts in a row there is a pause before the next try. */
const hurriedConflicts = 3;

/** Carries out changes: read, draft, commit, and again if someone was faster. The only place that calls `store.commit`. */
export class Writer {
  readonly #ports: WriterPorts;
  #failing = false;

  constructor(ports: WriterPorts) {
    this.#ports = ports;
  }

  /** Must be called within the cell's `serial`. */
  async change<Result>(
    cell: Cell,
    decide: (draft: () => Draft, seen: Seen) => DraftedChange<Result>,
    options: WriteOptions = {},
  ): Promise<Result> {
    let wanted = options.parts ?? [];
    let { behind = [] } = options;
    let read: PartsRead = nothingRead;
    // What was read for this very change is fresh; what the cell remembers may be old if other processes write, too.
    let fresh = false;
    let mayBeMade = false;
    if (cell.snapshot === undefined && cell.held === undefined && options.likelyNew) {
      cell.snapshot = null;
      read = { ...nothingRead, texts: new Map(wanted.map((id) => [id, null])) };
    } else if (
      cell.snapshot === undefined ||
      wanted.length > 0 ||
      behind.length > 0 ||
      (options.partsUnder?.length ?? 0) > 0
    ) {
      read = await this.#read(cell, wanted, behind, options);
      fresh = true;
    }
    for (let conflicts = 0; ; ) {
      const snapshot = cell.snapshot ?? null;
      const now = this.#ports.time.now();
      const leased = cell.held !== undefined || isLeased(snapshot);
      const { texts: parts, waiting } = read;
      const { isPaused } = this.#ports;
      const { hasQueue } = read;
      const seen: Seen = { snapshot, leased, parts, behind: waiting, hasQueue, mayBeMade, now, isPaused };
      let drafted: DraftedChange<Result>;
      try {
        drafted = decide(() => this.#draft(cell.key, seen), seen);
        const { draft } = drafted;
        if (draft?.operations.wantsRefill) await this.#refill(draft, options);
      } catch (error) {
        // A decision on what was guessed or remembered counts only if it can be committed; a refusal has to be fresh.
        if (error instanceof NeedsParts) {
          if (error.ids === "queue") behind = "all";
          else wanted = [...wanted, ...error.ids];
        } else if (fresh) throw error;
        read = await this.#read(cell, wanted, behind, options);
        fresh = true;
        continue;
      }
      const { draft, result } = drafted;
      if (draft === undefined || draft.isEmpty) {
        if (fresh) return result;
        read = await this.#read(cell, wanted, behind, options);
        fresh = true;
        continue;
      }
      const asked = drafted.tenure?.(draft, seen) ?? keep;
      // J2: what brings no entry leaves the seq as it is, so that the epoch has to tell others that the record has changed.
      const tenure = draft.entries.length === 0 ? { ...asked, raisesEpoch: true } : asked;
      const epoch = epochAfter(seen, tenure);
      if (snapshot === null || isLease(tenure.lease)) draft.heldBy(epoch);
      const followed = draft.state.data !== draft.base.state.data && this.#mayBeFollowed(cell.key);
      const change = toChange(draft, snapshot, tenure, epoch, followed);
      if (options.confirm !== undefined) await options.confirm();
      options.beforeCommit?.();
      const outcome = await this.#commit(change, options);
      if (outcome.kind === "committed") {
        cell.snapshot = outcome.certain ? { record: recordAfter(change, snapshot), state: draft.state } : undefined;
        return result;
      }
      mayBeMade ||= outcome.mayBeMade;
      this.#checkGiveUp(options, "contention");
      if (++conflicts > hurriedConflicts) await this.#pause(conflicts - hurriedConflicts);
      read = await this.#read(cell, wanted, behind, options);
      fresh = true;
    }
  }

  /** Reads the record anew into the cell, with parts if wanted. */
  async refresh(cell: Cell, options: WriteOptions = {}): Promise<void> {
    await this.#read(cell, [], [], options);
  }

  /** Calls the store until it answers, as long as the options allow. */
  async persist<T>(doing: string, ask: () => Promise<T>, options: WriteOptions = {}, failed = 0): Promise<T> {
    for (let failures = failed + 1; ; failures++) {
      this.#checkStopped();
      try {
        const answer = await ask();
        this.#answered(doing);
        return answer;
      } catch (error) {
        await this.#failed(doing, error, failures, options);
      }
    }
  }

  #checkStopped(): void {
    if (this.#ports.isStopped()) throw new JournalError("stopped");
  }

  #answered(doing: string): void {
    if (!this.#failing) return;
    this.#failing = false;
    this.#ports.observe({ kind: "store answered again", doing });
  }

  /** Waits before the next try, or throws if there is none. */
  async #failed(doing: string, error: unknown, failures: number, options: WriteOptions): Promise<void> {
    if (!(error instanceof JournalError && error.code === "store-unavailable")) throw error;
    if (!this.#failing) {
      this.#failing = true;
      this.#ports.observe({ kind: "store failed", doing, error });
    }
    const refusal = options.mayGoOn?.();
    if (refusal !== undefined) throw refusal;
    this.#checkGiveUp(options, "store-unavailable", error);
    await this.#pause(failures, options.giveUpAt);
  }

  async #read(cell: Cell, parts: readonly string[], behind: Behind, options: WriteOptions): Promise<PartsRead> {
    for (let conflicts = 1; ; conflicts++) {
      const ask = () => readWithQueue(this.#ports.store, cell.key, parts, behind);
      const whole = await this.persist("read", ask, options);
      const { found, waiting } = whole;
      cell.snapshot =
        found === undefined ? null : { record: found.record, state: stateAt(found.record, cell.snapshot) };
      const texts = new Map<string, string | null>(parts.map((id) => [id, found?.parts.get(id) ?? null]));
      for (const [id, body] of waiting) texts.set(id, body);
      const read = { texts, waiting: operationsIn(whole), hasQueue: behind === "all" };
      if (options.partsUnder === undefined || found === undefined) return read;
      const under = new Map<string, string>();
      for (const prefix of options.partsUnder) await this.#readUnder(cell.key, prefix, under, options);
      for (const [id, body] of under) texts.set(id, body);
      // They were read after the record: of one moment only if that is where it was. A decision that changes nothing is held to no seq.
      const versions = await this.persist("read", () => this.#ports.store.versions([cell.key]), options);
      // The seq alone is not enough: a resource that was removed and made anew may be as long as the one before.
      const version = versions.get(cell.key);
      if (version?.seq === found.record.seq && version.epoch === found.record.epoch) return read;
      this.#checkGiveUp(options, "contention");
      if (conflicts > hurriedConflicts) await this.#pause(conflicts - hurriedConflicts);
    }
  }

  async #readUnder(key: string, prefix: string, under: Map<string, string>, options: WriteOptions): Promise<void> {
    const most = limits.partsOfADecision;
    for (let after: string | null = null; ; ) {
      const range = { prefix, after, limit: partsPage };
      const page: readonly StoredPart[] = await this.persist(
        "read",
        () => this.#ports.store.parts(key, range),
        options,
      );
      for (const { id, body } of page) if (!isReserved(id)) under.set(id, body);
      if (under.size > most) {
        const sentence = `more than ${most} parts are under ${JSON.stringify(prefix)}; no decision sees so many`;
        throw new JournalError("too-large", sentence);
      }
      const last = page.at(-1);
      if (last === undefined || page.length < partsPage) return;
      // Thousands of queued operations may lie between: they are passed over.
      after = isReserved(last.id) ? behindReserved : last.id;
    }
  }

  async #refill(draft: Draft, options: WriteOptions): Promise<void> {
    const { store } = this.#ports;
    for (let limit = draft.operations.mostToRefill; ; limit *= 4) {
      const range = { prefix: queuePrefix, after: null, limit };
      const waiting = await this.persist("read", () => store.parts(draft.base.key, range), options);
      const isEnough = waiting.length < limit || limit >= mostToRefill || !draft.operations.needsMoreThan(waiting);
      if (isEnough) return draft.operations.refill(waiting);
    }
  }

  /** Where nobody polls, word of a change is the only way in which another journal on the store can learn of it: all are told. */
  #mayBeFollowed(key: string): boolean {
    return this.#ports.store.pace.pollMs === null || this.#ports.isFollowed(key);
  }

  #draft(key: string, { snapshot, leased, now, isPaused, parts, hasQueue }: Seen): Draft {
    const { kinds, retention, maxOpen, token } = this.#ports;
    const state = snapshot?.state ?? emptyState;
    return new Draft({
      key,
      seq: snapshot?.record.seq ?? 0,
      state,
      parts,
      hasQueue,
      leased,
      now,
      isPaused,
      token: token(),
      kinds,
      retention,
      maxOpen,
    });
  }

  /**
   * Commits, surely: if the answer was lost, the same change is tried again, and a conflict then means either that it had been
   * committed (the entry carries its token) or that someone else was faster. Of a change without entries nothing tells which.
   */
  async #commit(change: Change, options: WriteOptions): Promise<Committed> {
    const { store, time } = this.#ports;
    // Every change comes by here: what `persist` does for a first answer is done without it.
    this.#checkStopped();
    let askedAt = time.asks();
    let outcome: CommitOutcome;
    try {
      outcome = await store.commit(change);
      this.#answered("commit");
      if (outcome.kind === "committed") {
        time.learn(outcome.at, askedAt);
        return committedSurely;
      }
      return { kind: "conflict", mayBeMade: false };
    } catch (error) {
      await this.#failed("commit", error, 1, options);
    }
    const ask = () => {
      askedAt = time.asks();
      return store.commit(change);
    };
    outcome = await this.persist("commit", ask, options, 1);
    if (outcome.kind === "committed") {
      time.learn(outcome.at, askedAt);
      return committedSurely;
    }
    // An answer was lost.
    if (change.entries.length === 0) return { kind: "conflict", mayBeMade: true };
    const first = (change.expected?.seq ?? 0) + 1;
    const read = () => this.#ports.store.entries(change.key, { kind: "numbers", seqs: [first] });
    const [entry] = await this.persist("read", read, options);
    if (entry?.token === change.token) return { kind: "committed", certain: false };
    return { kind: "conflict", mayBeMade: false };
  }

  #checkGiveUp({ giveUpAt }: WriteOptions, code: "contention" | "store-unavailable", cause?: unknown): void {
    if (giveUpAt === undefined || this.#ports.clock.monotonicMs() < giveUpAt) return;
    if (cause instanceof JournalError) throw cause;
    throw new JournalError(code);
  }

  /** Not beyond the time to give up: the last try then tells what is wrong. */
  #pause(failures: number, giveUpAt = Number.POSITIVE_INFINITY): Promise<void> {
    const left = Math.max(0, giveUpAt - this.#ports.clock.monotonicMs());
    const ms = Math.min(left, nextDelayMs(failures, this.#ports.random, backoff));
    return new Promise((resolve) => void this.#ports.clock.after(ms, resolve));
  }
}

/** `certain`: nothing has happened to the resource since, as far as the store has said. */
type Committed =
  | { readonly kind: "committed"; readonly certain: boolean }
  | { readonly kind: "conflict"; readonly mayBeMade: boolean };

const committedSurely: Committed = { kind: "committed", certain: true };

interface PartsRead {
  readonly texts: ReadonlyMap<string, string | null>;
  readonly waiting: readonly OpenOperation[];
  readonly hasQueue: boolean;
}

const nothingRead: PartsRead = { texts: new Map(), waiting: [], hasQueue: false };

/** A record that has not changed since it was seen need not be read from its text again. */
function stateAt(record: StoredRecord, before: Snapshot | null | undefined): ResourceState {
  const isSame = before?.record.seq === record.seq && before.record.state === record.state;
  return isSame ? before.state : stateOf(record);
}

const keep: Tenure = { lease: "keep", raisesEpoch: false, dueAt: "keep", wake: false };

/**
 * Whether an engine may be in the middle of the resource's operations. Also where the lease has run out: its owner may have stood still
 * and renew it in the next moment, as long as nobody has taken it. Only a claim ends a lease.
 */
export function isLeased(snapshot: Snapshot | null): boolean {
  return snapshot !== null && snapshot.record.lease !== null;
}

/**
 * A new record begins at the time, so that a key which was removed and is used again never comes back to an epoch of its former life:
 * a writer left over from there would not be refused.
 */
function epochAfter({ snapshot, now }: Seen, tenure: Tenure): number {
  return (snapshot?.record.epoch ?? now) + (tenure.raisesEpoch ? 1 : 0);
}

function isLease(lease: Tenure["lease"]): lease is Lease {
  return lease !== null && lease !== "keep";
}

function toChange(draft: Draft, snapshot: Snapshot | null, tenure: Tenure, epoch: number, followed: boolean): Change {
  const before = snapshot?.state.labels ?? {};
  const after = draft.state.labels;
  const wasPassedOver = snapshot !== null && mayBePassedOver(snapshot.state);
  const isPassedOver = mayBePassedOver(draft.state);
  return {
    key: draft.base.key,
    expected: snapshot === null ? null : { seq: snapshot.record.seq, epoch: snapshot.record.epoch },
    token: draft.base.token,
    state: draft.stateText(),
    lane: laneOf(draft.state),
    epoch,
    lease: tenure.lease,
    dueAt: tenure.dueAt,
    entries: draft.entries,
    putParts: draft.parts.put.size === 0 ? [] : Array.from(draft.parts.put, ([id, body]) => ({ id, body })),
    deleteParts: draft.parts.deleted.size === 0 ? [] : [...draft.parts.deleted],
    // Also if it should have the mark already: an earlier version that wrote the resource gave it none. To add it again changes nothing.
    addLabels: withMark(labelsNotIn(after, before), isPassedOver),
    removeLabels: withMark(labelsNotIn(before, after), wasPassedOver && !isPassedOver),
    deleteEntries: draft.deleteEntries,
    wake: tenure.wake,
    followed,
  };
}

const noLabels: readonly Label[] = [];

function withMark(labels: readonly Label[], isMarked: boolean): readonly Label[] {
  return isMarked ? [...labels, passedOverLabel] : labels;
}

function labelsNotIn(
  labels: Readonly<Record<string, string>>,
  others: Readonly<Record<string, string>>,
): readonly Label[] {
  if (labels === others) return noLabels;
  const missing = Object.entries(labels).filter(
    ([name, value]) => !(Object.hasOwn(others, name) && others[name] === value),
  );
  return missing.map(([name, value]) => ({ name, value }));
}

function recordAfter(change: Change, snapshot: Snapshot | null): StoredRecord {
  const before = snapshot?.record;
  return {
    key: change.key,
    seq: (before?.seq ?? 0) + change.entries.length,
    epoch: change.epoch,
    state: change.state,
    lane: change.lane,
    dueAt: change.dueAt === "keep" ? (before?.dueAt ?? null) : change.dueAt,
    lease: change.lease === "keep" ? (before?.lease ?? null) : change.lease,
  };
}

import { randomUUID } from "node:crypto";
import { carefully as aroundCarefully, nothingAround } from "./around.js";
import { type Clock, systemClock } from "./clock.js";
import { type Backlog, backlogOf } from "./decisions/backlog.js";
import { checkDecision } from "./decisions/check-decision.js";
import type { Draft } from "./decisions/draft.js";
import { checkRule, ruleEntry, withRule } from "./decisions/lane-rules.js";
import { viewOf } from "./decisions/resource-view.js";
import { defaultRetention } from "./decisions/retention.js";
import { type Cell, Cells } from "./engine/cell.js";
import { type Effect, type EffectNote, noteEffect } from "./engine/effects.js";
import { Engine } from "./engine/engine.js";
import { SharedLanes } from "./engine/shared-lanes.js";
import { StoreTime } from "./engine/time.js";
import { type Ended, Waiters } from "./engine/waiters.js";
import { Writer } from "./engine/writer.js";
import { JournalError } from "./errors.js";
import { type Followed, Following } from "./followed.js";
import type { BacklogBounds, Journal, JournalOptions, SharedLaneRules, TransactOptions } from "./journal.js";
import type { Json } from "./json.js";
import { checkKey, checkLane } from "./names.js";
import { type CrashPoint, factsOf, type Observe } from "./observe.js";
import type { AskedOperation, Attribution, Outcome } from "./operation.js";
import type { Page, Part, PartPage } from "./page.js";
import {
  type EntryPage,
  type KeyPage,
  type OperationPage,
  type OperationStatus,
  Reader,
  type ResourceQuery,
  type WorkQuery,
} from "./reader.js";
import type { Decide, Entry, Resource, Transacted } from "./resource.js";
import type { Store } from "./store.js";

const defaultBounds: BacklogBounds = { limit: 10_000, sample: 200, failures: 5 };

const defaults = { concurrency: 256, maxOpen: 10_000, timeoutMs: 10_000, graceMs: 10_000, drainMs: 10_000 };

/** The journal on a store: its parts, put together. */
export class StoreJournal implements Journal {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #time: StoreTime;
  readonly #cells = new Cells();
  readonly #waiters = new Waiters();
  readonly #writer: Writer;
  readonly #engine: Engine;
  readonly #reader: Reader;
  readonly #following: Following;
  readonly #memberMs: number;
  readonly #random: () => number;
  readonly #token: () => string;
  #sharedLanes: Promise<SharedLanes> | undefined;
  #shared: SharedLanes | undefined;
  readonly #observe: Observe;
  readonly #reached: (point: CrashPoint) => void;
  readonly #timeoutMs: number;
  readonly #graceMs: number;
  #stopped = false;
  #stopping: Promise<void> | undefined;

  constructor(options: JournalOptions) {
    const { store, kinds, random = Math.random, token = randomToken, clock = systemClock } = options;
    const retention = { ...defaultRetention, ...options.retention };
    const concurrency = options.concurrency ?? defaults.concurrency;
    this.#store = store;
    this.#clock = clock;
    this.#time = new StoreTime(clock);
    this.#observe = carefully(options.observe);
    this.#reached = options.reached ?? (() => undefined);
    this.#timeoutMs = options.timeoutMs ?? defaults.timeoutMs;
    this.#graceMs = options.graceMs ?? defaults.graceMs;
    this.#memberMs = options.leaseMs ?? store.pace.leaseMs;
    this.#random = random;
    this.#token = token;
    const isPaused = (lane: string) => this.#engine.isPaused(lane);
    this.#reader = new Reader({ store, observe: this.#observe, now: () => this.now(), isPaused });
    const common = { store, clock, time: this.#time, kinds, retention, random, token, observe: this.#observe };
    this.#writer = new Writer({
      ...common,
      maxOpen: options.maxOpen ?? defaults.maxOpen,
      isFollowed: (key) => this.#following.has(key),
      isStopped: () => this.#engine.isStopped,
      isPaused,
    });
    this.#following = new Following({
      store,
      clock,
      time: this.#time,
      observe: this.#observe,
      persist: (ask) => {
        const giveUpAt = clock.monotonicMs() + this.#timeoutMs;
        return this.#within(this.#writer.persist("read", ask, { giveUpAt }), this.#timeoutMs);
      },
      within: (work) => this.#within(work, this.#timeoutMs),
      transact: async (key, decide, how) => (await this.#transact(key, decide, how)).result,
    });
    const around = options.around === undefined ? nothingAround : aroundCarefully(options.around);
    const settled = (draft: Draft) => {
      this.#tell(draft);
      if (draft.state.data !== draft.base.state.data) this.#following.changed(draft.base.key);
    };
    this.#engine = new Engine(
      {
        ...common,
        transact: async (key, decide, how, effect) => {
          checkKey(key);
          return this.#transact(key, decide, how, effect);
        },
        placeFreed: (lane) => this.#shared?.freed(lane),
        confirmPlace: (lane) => this.#shared?.confirm(lane),
        writer: this.#writer,
        reader: this.#reader,
        cells: this.#cells,
        reached: this.#reached,
        settled,
        around,
      },
      {
        concurrency,
        laneConcurrency: options.laneConcurrency ?? Math.max(1, Math.ceil(concurrency / 2)),
        graceMs: this.#graceMs,
        leaseMs: options.leaseMs ?? store.pace.leaseMs,
      },
    );
  }

  async learnTime(): Promise<void> {
    const askedAt = this.#time.asks();
    this.#time.learn(await this.#store.now(), askedAt);
  }

  get running(): number {
    return this.#engine.running;
  }

  now(): number {
    return this.#time.now();
  }

  async transact<Result>(key: string, decide: Decide<Result>, options: TransactOptions): Promise<Transacted<Result>> {
    checkKey(key);
    return this.#transact(key, decide, options);
  }

  #transact<Result>(
    key: string,
    decide: Decide<Result>,
    options: TransactOptions,
    effect?: Effect,
  ): Promise<Transacted<Result>> {
    this.#checkRunning();
    const timeoutMs = options.timeoutMs ?? this.#timeoutMs;
    const giveUpAt = this.#clock.monotonicMs() + timeoutMs;
    const cell = this.#cells.enter(key);
    const work = async () => {
      try {
        const transacted = await this.#transactNow(cell, decide, options, giveUpAt, effect);
        // Before the caller hears of it: what was changed here is in the copy here.
        this.#following.saw(key, cell.snapshot === null ? null : cell.snapshot?.record);
        return transacted;
      } finally {
        // The cell stays in use until the work is over, also if its caller has stopped waiting for it.
        this.#cells.leave(cell);
      }
    };
    return this.#within(cell.serial(work), timeoutMs);
  }

  async #transactNow<Result>(
    cell: Cell,
    decide: Decide<Result>,
    options: TransactOptions,
    giveUpAt: number,
    effect: Effect | undefined,
  ): Promise<Transacted<Result>> {
    // Its caller has been told that it may not come to be, and may have repeated it.
    if (this.#clock.monotonicMs() >= giveUpAt) throw new JournalError("store-unavailable", outOfTime);
    let lane: string | null = null;
    let written: Draft | undefined;
    const freePlace = () => {
      if (lane !== null) this.#engine.giveUpPlace(lane);
      lane = null;
    };
    let transacted: Transacted<Result>;
    try {
      transacted = await this.#writer.change(
        cell,
        (newDraft, seen) => {
          freePlace();
          written = undefined;
          const { snapshot } = seen;
          const note = effect && seen.parts.get(effect.part);
          if (typeof note === "string") {
            const { result, accepted } = JSON.parse(note) as EffectNote;
            return { result: { result: result as Result, accepted } };
          }
          const view =
            snapshot === null
              ? undefined
              : viewOf(cell.key, snapshot.record.seq, snapshot.state, seen.parts, seen, seen.behind);
          const decision = decide(view, seen.now);
          checkDecision(decision);
          if (decision.change === undefined) return { result: { result: decision.result, accepted: [] } };
          const draft = newDraft();
          draft.apply(decision.change, options.by);
          if (effect !== undefined) noteEffect(draft, effect, decision.result);
          written = draft;
          const tenure = () => {
            const taken = this.#engine.tenureAfterDecision(cell, draft, seen);
            lane = taken.lane;
            return taken.tenure;
          };
          return { result: { result: decision.result, accepted: draft.accepted }, draft, tenure };
        },
        {
          parts: effect === undefined ? (options.parts ?? []) : [...(options.parts ?? []), effect.part],
          ...(effect !== undefined && { confirm: effect.confirm }),
          ...(options.partsUnder !== undefined && { partsUnder: options.partsUnder }),
          likelyNew: options.likelyNew ?? false,
          behind: options.open === "all" ? "all" : (options.parts ?? []),
          giveUpAt,
          beforeCommit: () => this.#pointOf(written, "before"),
        },
      );
    } catch (error) {
      freePlace();
      if (error instanceof JournalError && error.code === "store-unavailable") this.#engine.lookAfterDoubt(cell);
      throw error;
    }
    if (written === undefined || written.isEmpty) return transacted;
    this.#pointOf(written, "after");
    this.#tell(written);
    const place = lane;
    lane = null;
    await this.#engine.afterDecision(cell, written, options.by, place);
    return transacted;
  }

  async followed<Value>(key: string, read: (data: Json) => Value): Promise<Followed<Value>> {
    checkKey(key);
    this.#checkRunning();
    return this.#following.follow(key, read);
  }

  read(key: string, parts: readonly string[] = []): Promise<Resource | undefined> {
    return this.#reader.read(key, parts);
  }

  entries(key: string, range: EntryPage = {}): Promise<readonly Entry[]> {
    return this.#reader.entries(key, range);
  }

  parts(key: string, prefix: string, page: PartPage = {}): Promise<Page<Part>> {
    return this.#reader.parts(key, prefix, page);
  }

  find(query: ResourceQuery = {}): Promise<Page<Resource>> {
    return this.#reader.find(query);
  }

  listSetAside(page: KeyPage = {}): Promise<Page<string>> {
    return this.#reader.listSetAside(page);
  }

  withWork(query: WorkQuery = {}): Promise<Page<Resource>> {
    return this.#reader.withWork(query);
  }

  pauseLanes(lanes: ReadonlySet<string>): void {
    this.#engine.pauseLanes(lanes);
  }

  operation(key: string, id: string): Promise<OperationStatus | undefined> {
    return this.#reader.operation(key, id);
  }

  operations(key: string, page: OperationPage = {}): Promise<Page<AskedOperation>> {
    return this.#reader.operations(key, page);
  }

  async cancel(key: string, id: string, reason: string, by: Attribution): Promise<boolean> {
    checkKey(key);
    const status = await this.operation(key, id);
    if (status?.status !== "open") return false;
    try {
      const asked: Decide<boolean> = (resource) =>
        resource === undefined ? { result: false } : { result: true, change: { cancel: [{ operation: id, reason }] } };
      return (await this.transact(key, asked, { by })).result;
    } catch (error) {
      // It has ended between the look and the change.
      if (error instanceof JournalError && error.code === "invalid-change") return false;
      throw error;
    }
  }

  async ended(
    key: string,
    id: string,
    { withinMs, signal }: { readonly withinMs: number; readonly signal?: AbortSignal },
  ): Promise<Outcome | undefined> {
    checkKey(key);
    const giveUpAt = this.#clock.monotonicMs() + withinMs;
    let heard: Ended | undefined;
    let wake = (): void => undefined;
    const callOff = this.#waiters.wait(id, (ended) => {
      heard = ended;
      wake();
    });
    const onAbort = () => wake();
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      // Heard at once if it ends in this process; looked up now and then in case it ends in another one.
      for (let pauseMs = 50; ; pauseMs = Math.min(pauseMs * 2, 1_000)) {
        // What is being run here has not ended, and is heard of when it does: it need not be read.
        const runsHere = this.#runsHere(key, id);
        const status = heard === undefined && !runsHere ? await this.operation(key, id) : undefined;
        const outcome = heard?.outcome ?? status?.outcome ?? undefined;
        if (outcome !== undefined) return outcome;
        const leftMs = giveUpAt - this.#clock.monotonicMs();
        const isUnknown = heard === undefined && status === undefined && !runsHere;
        if (leftMs <= 0 || signal?.aborted || isUnknown) return undefined;
        await new Promise<void>((resolve) => {
          const callOffTimer = this.#clock.after(Math.min(pauseMs, leftMs), resolve);
          wake = () => {
            callOffTimer();
            resolve();
          };
          if (heard !== undefined) wake();
        });
      }
    } finally {
      callOff();
      signal?.removeEventListener("abort", onAbort);
    }
  }

  async backlog(bounds: Partial<BacklogBounds> = {}): Promise<Backlog> {
    this.#checkRunning();
    const { limit, sample, failures } = { ...defaultBounds, ...bounds };
    return backlogOf(await this.#store.backlog({ limit, sample }), failures);
  }

  async restore(key: string): Promise<void> {
    checkKey(key);
    await this.#store.restore(key);
    this.#engine.look();
  }

  async lanes(): Promise<SharedLaneRules> {
    this.#checkRunning();
    this.#sharedLanes ??= SharedLanes.open({
      store: this.#store,
      clock: this.#clock,
      time: this.#time,
      observe: this.#observe,
      random: this.#random,
      token: this.#token,
      following: this.#following,
      within: (work, ms) => this.#within(work, ms),
      memberMs: this.#memberMs,
      use: this.#engine.laneUse,
      apply: (...rules) => this.#engine.shareLanes(...rules),
    }).catch((error: unknown) => {
      this.#sharedLanes = undefined;
      throw error;
    });
    const shared = await this.#sharedLanes;
    this.#shared = shared;
    if (this.#engine.isRunning) shared.begin();
    const { rules } = shared;
    return {
      get value() {
        return rules.value;
      },
      get staleSince() {
        return rules.staleSince;
      },
      set: async (lane, rule, options) => {
        checkLane(lane);
        checkRule(rule);
        await rules.update(
          (before) => ({ value: withRule(before, lane, rule), entries: [ruleEntry(lane, rule)] }),
          options,
        );
      },
      onChange: (listener) => rules.onChange(listener),
    };
  }

  async start(): Promise<void> {
    this.#checkRunning();
    await this.#engine.start();
    this.#shared?.begin();
  }

  /** Asked for twice, it stops once: the second one waits for the first. */
  stop(options: { readonly drainMs?: number } = {}): Promise<void> {
    this.#stopping ??= this.#stopNow(options);
    return this.#stopping;
  }

  async #stopNow(options: { readonly drainMs?: number }): Promise<void> {
    if (this.#stopped) return;
    await this.#engine.drain(options.drainMs ?? defaults.drainMs);
    // Nothing runs here any more. Without a store the shares become free when they lapse.
    const ended = this.#shared?.end().catch(() => undefined);
    if (ended !== undefined) await this.#within(ended, this.#graceMs).catch(() => undefined);
    this.#following.end();
    this.#stopped = true;
    await this.#closeStore();
  }

  async kill(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#shared?.abandon();
    this.#following.end();
    this.#engine.abandon();
    await this.#closeStore();
  }

  /** A store that does not answer must not keep the process from ending. */
  #closeStore(): Promise<void> {
    return new Promise((resolve, reject) => {
      const callOff = this.#clock.after(this.#graceMs, resolve);
      this.#store.close().then(resolve, reject).finally(callOff);
    });
  }

  #runsHere(key: string, id: string): boolean {
    const cell = this.#cells.get(key);
    // An attempt is still there for a moment when its end is recorded.
    return cell?.attempts.has(id) === true && cell.snapshot?.state.open.some((open) => open.id === id) === true;
  }

  #checkRunning(): void {
    if (this.#stopped) throw new JournalError("stopped");
  }

  #pointOf(draft: Draft | undefined, when: "before" | "after"): void {
    if (draft === undefined) return;
    if (draft.accepted.length > 0)
      this.#reached(when === "before" ? "before accept is committed" : "after accept is committed");
    else if (draft.entries.some(({ kind }) => kind === "cancel requested"))
      this.#reached(when === "before" ? "before cancel is committed" : "after cancel is committed");
  }

  /** What a commit has brought about, told to those who wait and those who watch. */
  #tell(draft: Draft): void {
    const { key } = draft.base;
    // What is about to be gone has no labels any more; what it was is still worth telling.
    const [before, after] = [draft.base.state.labels, draft.state.labels];
    const labels = before === after ? after : { ...before, ...after };
    for (const operation of draft.accepted)
      this.#observe({ kind: "accepted", ...factsOf(key, operation, labels), lane: operation.lane });
    for (const { kind, operation } of draft.entries) {
      if (kind === "cancel requested" && operation !== null)
        this.#observe({ kind: "cancel requested", key, operation });
    }
    for (const ended of draft.finished) {
      const { operation, requestId, settleError } = ended;
      const { acceptedAt, endedAt, outcome, message } = operation;
      this.#observe({
        kind: "settled",
        ...factsOf(key, { ...operation, requestId }, labels),
        outcome,
        message,
        tookMs: endedAt - acceptedAt,
        ...(settleError !== undefined && { settleError }),
      });
      this.#waiters.tell(ended);
    }
  }

  /** The caller's deadline, whatever the store does. */
  #within<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const late = () =>
        reject(
          new JournalError(
            "store-unavailable",
            `the store did not answer within ${timeoutMs} ms; what was asked may still come to be, and may be repeated`,
          ),
        );
      // A little more than the time for which it is tried: the error of the last try says more than this one.
      const callOff = this.#clock.after(timeoutMs + 100, late);
      const given = (value: T) => {
        callOff();
        resolve(value);
      };
      const failed = (reason: Error) => {
        callOff();
        reject(reason);
      };
      work.then(given, failed);
    });
  }
}

const outOfTime = "the time was over before the turn of this change came; it was not made, and may be repeated";

/** Whoever watches cannot harm what is watched. */
function carefully(observe: Observe | undefined): Observe {
  if (observe === undefined) return () => undefined;
  return (event) => {
    try {
      observe(event);
    } catch {
      // There is nobody else to tell.
    }
  };
}

function randomToken(): string {
  const id = randomUUID();
  return `${id.slice(0, 8)}${id.slice(24)}`;
}

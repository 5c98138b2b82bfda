import type { Around } from "../around.js";
import type { Clock } from "../clock.js";
import { nextDelayMs } from "../decisions/backoff.js";
import type { Draft } from "../decisions/draft.js";
import type { Retention } from "../decisions/retention.js";
import { nextLook, runnable } from "../decisions/schedule.js";
import { lackOfKeys } from "../encryption/without-keys.js";
import { Interrupted, JournalError } from "../errors.js";
import type { CrashPoint, Observe } from "../observe.js";
import type { Attribution } from "../operation.js";
import type { Reader } from "../reader.js";
import { stateOf } from "../state.js";
import type { Expected, Store, StoredRecord } from "../store.js";
import type { Cell, Cells } from "./cell.js";
import { Claims } from "./claims.js";
import { Lanes } from "./lanes.js";
import { Leases } from "./leases.js";
import { originsOf } from "./origin.js";
import { PassedOver } from "./passed-over.js";
import { isUnreadable, type OperationKinds, Runner, type TransactEffect } from "./runner.js";
import type { LaneUse } from "./shared-lanes.js";
import type { StoreTime } from "./time.js";
import type { Seen, Tenure, Writer } from "./writer.js";

export interface EnginePorts {
  readonly store: Store;
  readonly writer: Writer;
  readonly reader: Reader;
  readonly cells: Cells;
  readonly clock: Clock;
  readonly time: StoreTime;
  readonly kinds: OperationKinds;
  readonly retention: Retention;
  readonly random: () => number;
  readonly token: () => string;
  readonly observe: Observe;
  readonly around: Around;
  /** An operation of the lane runs no more. */
  readonly placeFreed: (lane: string) => void;
  /** Makes sure, before something begins in it, that a place in the lane still is one. */
  readonly confirmPlace: (lane: string) => Promise<void> | undefined;
  /** Changes another resource on behalf of an operation. */
  readonly transact: TransactEffect;
  readonly reached: (point: CrashPoint) => void;
  /** A commit of the engine's has brought operations to their end. */
  readonly settled: (draft: Draft) => void;
}

export interface EngineOptions {
  /** Operations that run at the same time in this process. */
  readonly concurrency: number;
  /** Of them, how many of one lane. */
  readonly laneConcurrency: number;
  readonly leaseMs: number;
  /** How long a function that was told to stop may take to do so before it is given up. */
  readonly graceMs: number;
}

/** Held resources are not read more often than this to see what others did to them. */
const heldPauseMs = 250;
/** An engine that the store vouched for this long has come back to stay. */
const steadyMs = 10_000;
/** Between its returns if it has not. */
const returnBackoff = { firstMs: 500, factor: 2, longestMs: 10_000 };
/** Resources of which a store tells in one call where they are. */
const mostVersions = 1_000;
/** Renewals of leases under way at a time. */
const mostRenewals = 3;

/**
 * The one loop: claim → run → record → retry or settle. It puts its parts together (what is claimed, what is held, what runs) and
 * begins and ends them. It holds nothing that is not in the store: a lease says what it runs, the record says how far that got.
 */
export class Engine {
  readonly #ports: EnginePorts;
  readonly #options: EngineOptions;
  readonly #lanes: Lanes;
  readonly #leases: Leases;
  readonly #runner: Runner;
  readonly #claims: Claims;
  /** Work under way, so that a stop can wait for it. */
  readonly #underWay = new Set<Promise<void>>();
  readonly #timers = new Map<string, () => void>();
  #phase: "idle" | "running" | "draining" | "stopped" = "idle";
  #heldAskedFor = false;
  #renewals = 0;
  #arrivedAt = 0;
  /** How often the store has lost sight of the engine without its having stayed in between. */
  #losses = 0;
  #unlisten: () => void = () => undefined;

  constructor(ports: EnginePorts, options: EngineOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#lanes = new Lanes(options.concurrency, options.laneConcurrency, () => ports.time.now());
    this.#leases = new Leases(ports, options.leaseMs);
    this.#runner = new Runner({
      ...ports,
      leases: this.#leases,
      lanes: this.#lanes,
      graceMs: options.graceMs,
      after: (ms, wake) => ports.clock.after(ms, wake),
      mayBegin: () => this.#phase === "running",
      mayRecord: () => this.#phase !== "stopped",
      lookBy: (at) => this.#claims.lookBy(at),
      freed: (lane) => this.#freePlace(lane),
      follow: (doing, cell, work) => void this.#follow(doing, cell, work),
    });
    this.#claims = new Claims({
      ...ports,
      lanes: this.#lanes,
      leases: this.#leases,
      passedOver: new PassedOver({ ...ports, lanes: this.#lanes }),
      adopt: (record) => this.#adopt(record),
      lookAtHeld: () => this.#lookAtHeld(),
      isHeld: (key) => ports.cells.get(key)?.held !== undefined,
      lookAfterDoubt: (key) => {
        const cell = ports.cells.enter(key);
        this.#lookAfterDoubt(cell);
        ports.cells.leave(cell);
      },
    });
  }

  get running(): number {
    return this.#lanes.running;
  }

  get isRunning(): boolean {
    return this.#phase === "running";
  }

  get isStopped(): boolean {
    return this.#phase === "stopped";
  }

  /** Dead owners are reaped before the first claim, so that what they left is due at once (J11). */
  async start(): Promise<void> {
    if (this.#phase !== "idle") throw new JournalError("stopped", "the engine was started before");
    const { store } = this.#ports;
    this.#phase = "running";
    try {
      await this.#arrive();
      await this.#leases.reap();
    } catch (error) {
      // As if it had never been started: it may be tried again.
      this.#phase = "idle";
      await this.#leases.leave().catch(() => undefined);
      throw error;
    }
    this.#unlisten = store.onWake((what) => {
      if (what === "work") this.#claims.look();
    });
    this.#every("renew", this.#options.leaseMs / 3, async () => {
      this.#watchLapsing();
      this.#renewBesides();
    });
    if (store.pace.reapMs !== null) this.#every("reap", store.pace.reapMs, () => this.#reap());
    this.#claims.begin();
  }

  /** Claims nothing more, lets what runs end for so long, interrupts the rest, and gives all leases back so that others go on at once. */
  async drain(drainMs: number): Promise<void> {
    if (this.#phase !== "running") {
      this.#phase = "stopped";
      return;
    }
    this.#phase = "draining";
    // What is being claimed at this moment is given back when it comes.
    this.#track(this.#claims.end());
    this.#unlisten();
    await this.#underWayWithin(drainMs);
    this.#interruptAll("the process stops; the operation goes on elsewhere");
    await this.#underWayWithin(this.#options.graceMs);
    // Without a store there is nobody to give a lease to: it runs out.
    const giveUpAt = this.#ports.clock.monotonicMs() + this.#options.graceMs;
    const given = this.#leases
      .held()
      .map((cell) => cell.serial(() => this.#leases.giveBack(cell, "now", { giveUpAt })));
    // The name goes last: leases are given back under it.
    this.#track(
      Promise.allSettled(given)
        .then(() => this.#leases.leave())
        .catch(() => undefined),
    );
    await this.#underWayWithin(this.#options.graceMs);
    this.#end();
  }

  /** Drops everything where it stands, as a killed process would. */
  abandon(): void {
    void this.#claims.end();
    this.#unlisten();
    this.#end();
    this.#interruptAll("the engine was stopped abruptly");
  }

  /** Nothing begins in these lanes here, and in no others than these. Where one is free again, there may be work. */
  pauseLanes(lanes: ReadonlySet<string>): void {
    this.#lanes.pause(lanes);
    this.#feed();
    this.#claims.look();
  }

  /** What holds for lanes in all processes, and this one's shares of them. */
  shareLanes(paused: ReadonlySet<string>, shares: ReadonlyMap<string, number>, until: number, isNews: boolean): void {
    this.#lanes.share(paused, shares, until);
    if (!isNews) return;
    this.#feed();
    this.#claims.look();
  }

  get laneUse(): LaneUse {
    return {
      running: () => this.#lanes.taken,
      // One that drains, or that the store does not vouch for, begins nothing: its idle places are for others.
      fullSince: (lane) => (this.#phase === "running" && this.#leases.owner !== null ? this.#lanes.fullSince(lane) : 0),
      awaited: (lane) => this.#runner.awaited(lane),
      owner: () => this.#leases.owner,
    };
  }

  isPaused(lane: string): boolean {
    return this.#lanes.isPaused(lane);
  }

  /** There may be work. */
  look(): void {
    this.#claims.look();
  }

  /**
   * Who runs a resource that a decision has changed: its runner goes on; if there is none and there is room here, this engine takes
   * it with the same commit, so that accepting and claiming are one; else whoever looks next.
   * Answers the lane in which a place was taken for it.
   */
  tenureAfterDecision(cell: Cell, draft: Draft, seen: Seen): { readonly tenure: Tenure; readonly lane: string | null } {
    const { snapshot, now } = seen;
    if (this.#leases.isOurs(cell, snapshot?.record)) return { tenure: this.#leases.hold(seen), lane: null };
    // What the cell believes to hold, another engine has: its lease must not be taken from it by a mere decision.
    this.#leases.taken(cell);
    const { open, queued } = draft.base.state;
    const newWork = draft.state.open !== open || draft.state.queued !== queued;
    // Also one that has run out: its owner may renew it in this very moment, and only a claim can tell which of the two came first.
    if (snapshot !== null && snapshot.record.lease !== null) {
      const tenure: Tenure = { lease: "keep", raisesEpoch: false, dueAt: newWork ? now : "keep", wake: newWork };
      return { tenure, lane: null };
    }
    const mayTake = this.#phase === "running" && this.#leases.owner !== null;
    const first = mayTake ? runnable(draft.state, now).find(({ lane }) => this.#lanes.tryEnter(lane)) : undefined;
    if (first !== undefined) {
      return { tenure: { ...this.#leases.hold(seen), raisesEpoch: true }, lane: first.lane };
    }
    const dueAt = nextLook(draft.state);
    const tenure: Tenure = { lease: null, raisesEpoch: false, dueAt, wake: newWork && dueAt !== null && dueAt <= now };
    return { tenure, lane: null };
  }

  /** A place that was taken for a commit that did not come to be. */
  giveUpPlace(lane: string): void {
    this.#freePlace(lane);
  }

  /** After a decision's commit, within the cell's turn. `lane`: this engine has just taken the lease and has a place there. */
  async afterDecision(cell: Cell, draft: Draft, attribution: Attribution, lane: string | null): Promise<void> {
    let place = lane;
    try {
      // If the commit's answer was lost, what it led to has to be read.
      if (cell.snapshot === undefined) await this.#ports.writer.refresh(cell);
      if (lane !== null) {
        const record = cell.snapshot?.record;
        if (record?.lease?.owner === this.#leases.owner && this.#phase === "running") this.#leases.take(cell, record);
      }
      if (cell.held === undefined) {
        this.#claims.lookBy(cell.snapshot?.record.dueAt ?? null);
        return;
      }
      place = null;
      await this.#runner.tend(cell, lane, originsOf(draft, attribution));
    } catch (error) {
      // The decision stands, whatever became of running it: this is not its caller's error.
      await this.#failed("tend", error, cell);
    } finally {
      if (place !== null) this.#freePlace(place);
    }
  }

  /**
   * A commit may have come to be although its caller has stopped waiting for the answer, with a lease for this engine in it. What it led
   * to is read as soon as the store answers: nobody else would look at it before that lease is over, and then perhaps nobody at all.
   */
  lookAfterDoubt(cell: Cell): void {
    this.#claims.doubt();
    this.#lookAfterDoubt(cell);
  }

  #lookAfterDoubt(cell: Cell): void {
    if (this.#phase !== "running") return;
    const mayGoOn = () => (this.#phase === "running" ? undefined : new JournalError("stopped"));
    const look = async () => {
      await this.#ports.writer.refresh(cell, { mayGoOn });
      const record = cell.snapshot?.record;
      if (record === undefined || cell.held !== undefined) return;
      if (record.lease === null || record.lease.owner !== this.#leases.owner) return this.#claims.lookBy(record.dueAt);
      this.#leases.take(cell, record);
      await this.#runner.tend(cell);
    };
    void this.#follow("tend", cell, () => cell.serial(look));
  }

  #adopt(record: StoredRecord): Promise<void> {
    const cell = this.#ports.cells.enter(record.key);
    return this.#follow("tend", cell, () =>
      cell.serial(async () => {
        if (this.#phase === "stopped") return;
        const adopted = this.#leases.adopt(cell, record);
        if (adopted === "none") return;
        cell.snapshot = adopted === "held" ? undefined : { record, state: stateOf(record) };
        await this.#runner.tend(cell);
      }),
    ).finally(() => this.#ports.cells.leave(cell));
  }

  #freePlace(lane: string): void {
    this.#lanes.leave(lane);
    this.#ports.placeFreed(lane);
    this.#feed();
    this.#claims.placeFreed(lane);
  }

  /** One after the other: who is fed and needs it no longer leaves the place to the next. */
  #feed(): void {
    const hungry = this.#runner.takeHungry();
    if (hungry === undefined) return;
    void this.#follow("tend", hungry, () => hungry.serial(() => this.#runner.tend(hungry))).then(() => this.#feed());
  }

  /**
   * Word of a cancellation comes with a claim of what is held already. Where there is no room to claim, it is asked instead which of the held
   * resources have changed: now, and if it is asked for again soon, once more a little later.
   */
  #lookAtHeld(): void {
    if (this.#phase !== "running") return;
    this.#heldAskedFor = true;
    if (this.#timers.has("held")) return;
    const look = () => {
      this.#timers.delete("held");
      if (!this.#heldAskedFor || this.#phase !== "running") return;
      this.#heldAskedFor = false;
      this.#timers.set("held", this.#ports.clock.after(heldPauseMs, look));
      this.#track(this.#lookAtChanged().catch((error: unknown) => this.#failed("read", error)));
    };
    look();
  }

  async #lookAtChanged(): Promise<void> {
    const held = this.#leases.held();
    for (let from = 0; from < held.length; from += mostVersions) {
      const some = held.slice(from, from + mostVersions);
      const versions = await this.#ports.store.versions(some.map(({ key }) => key));
      for (const cell of some) {
        const version = versions.get(cell.key);
        if (!isSeen(cell, version))
          void this.#follow("tend", cell, () => cell.serial(() => this.#lookAt(cell, version)));
      }
    }
  }

  async #lookAt(cell: Cell, version: Expected | undefined): Promise<void> {
    // When its turn has come, it may have been seen.
    if (cell.held === undefined || isSeen(cell, version)) return;
    await this.#ports.writer.refresh(cell);
    await this.#runner.tend(cell);
  }

  async #arrive(): Promise<void> {
    await this.#leases.arrive(() => this.#lostSight());
    this.#arrivedAt = this.#ports.clock.monotonicMs();
  }

  /**
   * At once, so that nothing waits for long. But each time others may have begun anew what ran here: if it happens again and again, as
   * when someone ends all sessions of a server, effects would be repeated as fast as sessions are opened. So pauses grow until the engine
   * has stayed for a while.
   */
  #lostSight(): void {
    if (this.#ports.clock.monotonicMs() - this.#arrivedAt > steadyMs) this.#losses = 0;
    const losses = this.#losses++;
    if (losses === 0) this.#comeBack();
    else this.#comeBackAfter(nextDelayMs(losses, this.#ports.random, returnBackoff));
  }

  #comeBackAfter(ms: number, failures = 0): void {
    const wake = () => {
      if (this.#phase === "running") this.#comeBack(failures);
    };
    this.#timers.set("attend", this.#ports.clock.after(ms, wake));
  }

  /**
   * Under another name, because the old one's leases may be taken by anyone. Whatever the store says against it, it is tried again, after
   * pauses that grow: an engine without a name runs nothing, for ever.
   */
  #comeBack(failures = 0): void {
    const stopped = () => (this.#phase === "running" ? undefined : new JournalError("stopped"));
    const back = async () => {
      await this.#ports.writer.persist("attend", () => this.#arrive(), { mayGoOn: stopped });
      // Whatever becomes of reaping, there may be work.
      this.#claims.look();
      await this.#reap().catch((error: unknown) => this.#failed("reap", error));
    };
    const again = async (error: unknown) => {
      await this.#failed("attend", error);
      if (this.#phase === "running") this.#comeBackAfter(nextDelayMs(failures + 1, this.#ports.random), failures + 1);
    };
    this.#track(back().catch(again));
  }

  async #reap(): Promise<void> {
    if ((await this.#leases.reap()) > 0) this.#claims.look();
  }

  /** A lease that was not renewed last time: unless it is this time, what has effects under it is told just before its end. */
  #watchLapsing(): void {
    const ms = this.#leases.lapsesInMs();
    if (ms === null || this.#timers.has("lapse")) return;
    const look = () => {
      this.#timers.delete("lapse");
      this.#leases.interruptLapsing();
    };
    this.#timers.set("lapse", this.#ports.clock.after(ms, look));
  }

  /**
   * Without waiting for those before: a renewal may hang in a connection that leads nowhere, and the next one takes another. But no more
   * than fit into a lease.
   */
  #renewBesides(): void {
    if (this.#renewals >= mostRenewals) return;
    this.#renewals++;
    const renewed = this.#renew()
      .catch((error: unknown) => this.#failed("renew", error))
      .finally(() => this.#renewals--);
    this.#track(renewed);
  }

  /** Whether a lease is lost is read, not guessed: it may have been given back by a commit that was under way. */
  async #renew(): Promise<void> {
    for (const cell of await this.#leases.renew()) {
      const look = async () => {
        cell.snapshot = undefined;
        await this.#leases.stands(cell);
      };
      void this.#follow("renew", cell, () => cell.serial(look));
    }
  }

  /** Keeps the cell in use and the work in sight until it is over. */
  #follow(doing: string, cell: Cell, work: () => Promise<void>): Promise<void> {
    const { cells } = this.#ports;
    const follow = async () => {
      try {
        await work();
      } catch (error) {
        await this.#failed(doing, error, cell);
      } finally {
        cells.leave(cell);
        this.#underWay.delete(followed);
      }
    };
    cells.enter(cell.key);
    const followed = follow();
    this.#underWay.add(followed);
    return followed;
  }

  #track(work: Promise<void>): void {
    this.#underWay.add(work);
    void work.finally(() => this.#underWay.delete(work));
  }

  /** What failed is not lost: its lease runs out, or the next look finds it. What cannot be read is taken out of the way. */
  async #failed(doing: string, error: unknown, cell?: Cell): Promise<void> {
    const { observe, store, writer } = this.#ports;
    if (error instanceof Interrupted) return;
    if (error instanceof JournalError && (error.code === "lease-lost" || error.code === "stopped")) return;
    if (cell === undefined || !isUnreadable(error)) return observe({ kind: "store failed", doing, error });
    this.#leases.lose(cell);
    cell.snapshot = undefined;
    const mayGoOn = () => (this.#phase === "stopped" ? new JournalError("stopped") : undefined);
    // Nothing is damaged if another process has begun to encrypt and this one was not given the keys: then it stays for those who were.
    const lack = await writer
      .persist("read", () => lackOfKeys(store), { mayGoOn })
      .catch((failure: unknown) => failure);
    if (lack !== undefined) return observe({ kind: "store failed", doing, error: lack });
    // It alone is set aside: a damaged row must not be claimed over and over, nor hold the others up.
    observe({ kind: "set aside", key: cell.key, error });
    await writer.persist("set aside", () => store.setAside(cell.key), { mayGoOn }).catch(() => undefined);
  }

  #every(name: string, ms: number, work: () => Promise<void>): void {
    const wake = () => {
      const again = () => {
        // What is still held while the engine drains has to stay held.
        if (this.#phase === "running" || (this.#phase === "draining" && name === "renew")) this.#every(name, ms, work);
      };
      this.#track(
        work()
          .catch((error: unknown) => this.#failed(name, error))
          .finally(again),
      );
    };
    this.#timers.set(name, this.#ports.clock.after(ms, wake));
  }

  #interruptAll(message: string): void {
    const reason = new Interrupted("stopping", message);
    for (const cell of this.#ports.cells.all()) for (const attempt of cell.attempts.values()) attempt.interrupt(reason);
  }

  #end(): void {
    this.#phase = "stopped";
    for (const callOff of this.#timers.values()) callOff();
  }

  async #underWayWithin(ms: number): Promise<void> {
    let callOff = (): void => undefined;
    const over = new Promise<"over">((resolve) => {
      callOff = this.#ports.clock.after(ms, () => resolve("over"));
    });
    while (this.#underWay.size > 0) {
      const all = Promise.all(this.#underWay).then(() => "done" as const);
      if ((await Promise.race([all, over])) === "over") break;
    }
    callOff();
  }
}

/** Whether the cell knows the resource as it was then, or later. */
function isSeen({ snapshot }: Cell, version: Expected | undefined): boolean {
  if (!snapshot || version === undefined) return false;
  return snapshot.record.seq >= version.seq && snapshot.record.epoch >= version.epoch;
}

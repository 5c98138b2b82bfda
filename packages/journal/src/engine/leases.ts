import { Interrupted, JournalError } from "../errors.js";
import type { CrashPoint, Observe } from "../observe.js";
import type { Store, StoredRecord } from "../store.js";
import type { Attempt } from "./attempt.js";
import type { Cell, Cells } from "./cell.js";
import { GivenBack } from "./given-back.js";
import type { StoreTime } from "./time.js";
import type { Seen, Tenure, WriteOptions, Writer } from "./writer.js";

export interface LeasePorts {
  readonly store: Store;
  readonly writer: Writer;
  readonly cells: Cells;
  readonly time: StoreTime;
  readonly token: () => string;
  readonly observe: Observe;
  readonly reached: (point: CrashPoint) => void;
}

/** What the store said of a lease counts for so long without asking again: it spares the question where steps follow each other. */
const trustMs = 1_000;
/** Leases are renewed when two thirds of them are left. Of one with so little left that was due before; with so little, it is about to run out. */
const overdueShare = 0.4;
const lapsingShare = 0.1;
/** How often the store is asked whether a lease stands, if each answer is out of date when it comes. */
const mostConfirmations = 3;

/** What this engine may run: under which name it is present at the store, and which resources it holds. */
export class Leases {
  readonly #ports: LeasePorts;
  readonly #leaseMs: number;
  readonly #givenBack = new GivenBack();
  #owner: string | null = null;
  /** The store no longer vouches for this engine. */
  #lost: () => void = () => undefined;

  constructor(ports: LeasePorts, leaseMs: number) {
    this.#ports = ports;
    this.#leaseMs = leaseMs;
  }

  get leaseMs(): number {
    return this.#leaseMs;
  }

  /** `null` while the store cannot vouch for this engine: nothing is claimed then. */
  get owner(): string | null {
    return this.#owner;
  }

  /** Comes under a new name. `lost`: the store no longer vouches for it, and everything held has been let go. */
  async arrive(lost: () => void): Promise<void> {
    const owner = this.#ports.token();
    let gone = false;
    const loseAll = () => {
      gone = true;
      if (this.#owner !== owner) return;
      this.#owner = null;
      this.#ports.observe({ kind: "presence lost" });
      // Others may take over from now on, so nothing here counts any more.
      for (const cell of [...this.#ports.cells.all()]) this.lose(cell);
      lost();
    };
    await this.#ports.store.attend(owner, loseAll);
    if (gone) throw new JournalError("store-unavailable", "the store lost sight of this engine as soon as it came");
    this.#lost = loseAll;
    this.#owner = owner;
  }

  async leave(): Promise<void> {
    const owner = this.#owner;
    this.#owner = null;
    if (owner !== null) await this.#ports.store.leave(owner);
  }

  /** J11: what dead engines held is due at once. Answers how many resources that were. */
  async reap(): Promise<number> {
    if (this.#owner === null) return 0;
    this.#ports.reached("before dead owners are reaped");
    const freed = await this.#ports.store.reap(this.#owner);
    this.#ports.reached("after dead owners are reaped");
    if (freed > 0) this.#ports.observe({ kind: "taken over", resources: freed });
    return freed;
  }

  held(): readonly Cell[] {
    return [...this.#ports.cells.all()].filter((cell) => cell.held !== undefined);
  }

  /** The runner of the resource goes on for another lease. */
  hold({ now }: Seen): Tenure {
    const until = now + this.#leaseMs;
    return { lease: { owner: this.#owner ?? "", until }, raisesEpoch: false, dueAt: until, wake: false };
  }

  /**
   * Whether a record as it was read is held by this engine. If this engine has claimed it anew, because its lease had run out and nobody
   * else wanted it, the epoch is one higher and nobody was in between: what runs goes on, under that epoch. The answer to such a claim
   * may have been lost, so that the cell learns of it here.
   */
  isOurs(cell: Cell, record: StoredRecord | undefined): boolean {
    const { held } = cell;
    if (held === undefined || record === undefined || this.#owner === null) return false;
    if (record.lease?.owner !== this.#owner || record.epoch < held.epoch || record.epoch > held.epoch + 1) return false;
    if (record.epoch > held.epoch) cell.held = { epoch: record.epoch, until: record.lease.until };
    return true;
  }

  /**
   * A claim's answer has come: takes the lease, unless the answer only tells of new work for a lease that is held, or was when the
   * claim was made. Within the cell's turn. Answers whether the cell holds a lease now.
   */
  adopt(cell: Cell, record: StoredRecord): "new" | "held" | "none" {
    if (this.isOurs(cell, record)) return "held";
    // An answer that was overtaken: what is held now is newer.
    if (cell.held !== undefined && cell.held.epoch > record.epoch) return "none";
    if (this.#givenBack.outdates(record.key, record.epoch) || record.lease?.owner !== this.#owner) return "none";
    // Someone else had it in between, although it was held here.
    this.taken(cell);
    if (record.lease.owner !== this.#owner) return "none";
    this.take(cell, record);
    return "new";
  }

  /** To be called around a claim and the adopting of what it brought. Answers what to call when that is over. */
  claimBegins(): () => void {
    return this.#givenBack.claimBegins();
  }

  take(cell: Cell, { epoch, lease }: StoredRecord): void {
    cell.held = { epoch, until: lease?.until ?? 0 };
    this.#ports.cells.enter(cell.key);
  }

  /** The lease is over, by a commit that said so. */
  drop(cell: Cell): void {
    if (cell.held === undefined) return;
    this.#givenBack.add(cell.key, cell.held.epoch);
    cell.held = undefined;
    cell.alarm?.();
    cell.alarm = undefined;
    this.#ports.cells.leave(cell);
  }

  /** The lease is over because someone else has it, or may have: what runs under it is told to stop and forgotten. */
  lose(cell: Cell): void {
    if (cell.held === undefined) return;
    this.#ports.observe({ kind: "lease lost", key: cell.key, running: cell.attempts.size });
    const reason = new Interrupted("lease-lost", "another engine has taken the resource over");
    for (const attempt of cell.attempts.values()) attempt.interrupt(reason);
    cell.attempts.clear();
    cell.snapshot = undefined;
    this.drop(cell);
  }

  /** Whether the cell holds a lease by what is known of it, without reading. */
  isHeld(cell: Cell): boolean {
    return cell.snapshot !== undefined && this.isOurs(cell, cell.snapshot?.record);
  }

  /** Reads whether the cell's lease still stands, and lets go of it if not. Within the cell's turn. */
  async stands(cell: Cell): Promise<boolean> {
    if (cell.held === undefined) return false;
    if (cell.snapshot === undefined) await this.#ports.writer.refresh(cell);
    if (this.isOurs(cell, cell.snapshot?.record)) return true;
    this.taken(cell);
    return false;
  }

  /**
   * The record says that the lease is another's, or nobody's. If it should still have run, this engine was taken for dead, and whatever
   * else it holds, or will claim under its name, is taken from it next: it does as if the store had told it so.
   */
  taken(cell: Cell): void {
    const owner = this.#owner;
    const tooEarly = cell.held !== undefined && cell.held.until > this.#ports.time.now();
    this.lose(cell);
    if (!tooEarly || owner === null) return;
    this.#lost();
    // Without waiting for it: the session that vouches for the old name may lead nowhere.
    this.#ports.store.leave(owner).catch(() => undefined);
  }

  /** Nothing is to be done for the resource before `dueAt`. Within the cell's turn. Answers when someone has to look again. */
  async giveBack(cell: Cell, dueAt: number | null | "now", options: WriteOptions = {}): Promise<number | null> {
    const { store, writer, time } = this.#ports;
    if (cell.held === undefined) return null;
    if (cell.snapshot === undefined) await writer.refresh(cell, options);
    const record = cell.snapshot?.record;
    const { epoch } = cell.held;
    const owner = this.#owner;
    this.drop(cell);
    cell.snapshot = undefined;
    if (record?.epoch !== epoch || owner === null) return null;
    let at = typeof dueAt === "number" && dueAt <= time.now() ? "now" : dueAt;
    try {
      for (let { seq } = record; ; ) {
        const release = { key: cell.key, epoch, seq, dueAt: at };
        await writer.persist("release", () => store.release(owner, [release]), options);
        // Nobody else writes to the store.
        if (store.pace.pollMs === null) break;
        // What has moved on is not released, and nobody would look at it before the lease is over. What moved it on may be due.
        const now = (await writer.persist("read", () => store.read(cell.key, []), options))?.record;
        if (now?.epoch !== epoch || now.lease?.owner !== owner || now.seq === seq) break;
        seq = now.seq;
        at = "now";
      }
    } finally {
      // A claim may have begun since the lease was dropped, and found it where it still was: its answer tells of what is over now.
      this.#givenBack.add(cell.key, epoch);
    }
    return at === "now" ? time.now() : at;
  }

  /**
   * Makes sure before an effect that the lease is ours and runs for a while yet. What the store said a moment ago counts; later the store
   * is asked: others may have taken the resource over although the lease has not run out, because the store lost sight of this engine
   * before it noticed, and after a pause of the whole process, or of the whole machine, no clock here tells that it is over.
   * Answers what to wait for, if there is anything: most steps follow each other at once.
   */
  confirm(cell: Cell, attempt: Attempt, options: () => WriteOptions): Promise<void> | undefined {
    // Each time that the store vouches for a lease it lasts its whole length again, so what is left of it tells how long ago that was.
    const isTrusted = this.#runsFor(cell, Math.max(this.#marginMs, this.#leaseMs - trustMs));
    return isTrusted ? undefined : this.#ask(cell, attempt, options());
  }

  get #marginMs(): number {
    return Math.min(1_000, this.#leaseMs / 5);
  }

  #runsFor({ held }: Cell, ms: number): boolean {
    return held !== undefined && held.until - this.#ports.time.now() > ms;
  }

  async #ask(cell: Cell, attempt: Attempt, options: WriteOptions): Promise<void> {
    for (let tries = 0; tries === 0 || !this.#runsFor(cell, this.#marginMs); tries++) {
      // Looked at again after each answer: it may have come so late that what it says is over, too.
      if (tries === mostConfirmations) {
        throw new JournalError("store-unavailable", "the store answers more slowly than a lease lasts");
      }
      await cell.serial(() => this.#prove(cell, attempt, options));
      if (attempt.interrupted !== undefined) return;
      if (this.#owner === null || cell.held === undefined || cell.attempts.get(attempt.operation.id) !== attempt)
        throw new JournalError("lease-lost");
    }
  }

  /** The same for who must not wait for the cell's turn. What is not certain counts as lost: the operation is begun anew. */
  async confirmWithoutTurn(cell: Cell, options: WriteOptions): Promise<void> {
    const { store, writer, time } = this.#ports;
    const owner = this.#owner;
    if (owner === null || cell.held === undefined) throw new JournalError("lease-lost");
    if (cell.held.until - time.now() > this.#leaseMs - trustMs) return;
    const { key } = cell;
    const { epoch } = cell.held;
    let asked = 0;
    const ask = () => {
      asked = time.now();
      return store.renew(owner, [{ key, epoch }], this.#leaseMs);
    };
    const kept = await writer.persist("renew", ask, options);
    if (kept.length === 0 || cell.held?.epoch !== epoch) throw new JournalError("lease-lost");
    cell.held.until = Math.max(cell.held.until, asked + this.#leaseMs);
  }

  /** Within the cell's turn. */
  async #prove(cell: Cell, attempt: Attempt, options: WriteOptions): Promise<void> {
    const { store, writer, time } = this.#ports;
    const owner = this.#owner;
    if (cell.held === undefined || owner === null || cell.attempts.get(attempt.operation.id) !== attempt) return;
    const { key } = cell;
    const { epoch } = cell.held;
    let asked = 0;
    const ask = () => {
      asked = time.now();
      return store.renew(owner, [{ key, epoch }], this.#leaseMs);
    };
    const kept = await writer.persist("renew", ask, options);
    if (kept.length > 0) {
      if (cell.held !== undefined) cell.held.until = asked + this.#leaseMs;
      return;
    }
    // It may be ours under the next epoch, by a claim whose answer was lost.
    cell.snapshot = undefined;
    await this.stands(cell);
  }

  /** When the first lease that was not renewed when it should have been is about to run out; `null`: there is none. */
  lapsesInMs(): number | null {
    const left = Math.min(...this.held().map(({ held }) => (held?.until ?? 0) - this.#ports.time.now()));
    return left > this.#leaseMs * overdueShare ? null : Math.max(0, left - this.#leaseMs * lapsingShare);
  }

  /**
   * What has effects under a lease that is about to run out, because the store has not answered, is told to stop: others may take over
   * then. A result that waits to be recorded stays: if nobody has taken over, it is recorded when the store answers.
   */
  interruptLapsing(): void {
    const reason = new Interrupted("lease-lost", "the lease could not be renewed, and others may take over");
    // Timers are not exact.
    const soon = this.#ports.time.now() + this.#leaseMs * lapsingShare + 1;
    for (const cell of this.held()) {
      if (cell.held === undefined || cell.held.until > soon) continue;
      for (const attempt of cell.attempts.values()) if (attempt.hasEffects) attempt.interrupt(reason);
    }
  }

  /** Prolongs all leases in one call. Answers the cells whose leases did not come back: they have to be looked at. */
  async renew(): Promise<readonly Cell[]> {
    const { store, reached, time } = this.#ports;
    const leases = this.held().map((cell) => ({ cell, key: cell.key, epoch: cell.held?.epoch ?? 0 }));
    if (leases.length === 0 || this.#owner === null) return [];
    reached("before leases are renewed");
    const asked = time.now();
    const kept = new Set(await store.renew(this.#owner, leases, this.#leaseMs));
    reached("after leases are renewed");
    const doubtful: Cell[] = [];
    for (const { cell, key, epoch } of leases) {
      // A lease that was given back or taken anew meanwhile is none of this answer's business.
      if (cell.held?.epoch !== epoch) continue;
      if (kept.has(key)) cell.held.until = Math.max(cell.held.until, asked + this.#leaseMs);
      else doubtful.push(cell);
    }
    return doubtful;
  }
}

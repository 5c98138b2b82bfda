import { Interrupted, JournalError } from "../errors.js";
import type { CrashPoint, Observe } from "../observe.js";
import type { Store, StoredRecord } from "../store.js";
import type { Attempt } from "./attempt.js";
import type { Cell, Cells } from "./cell.js";
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

/** What this engine may run: under which name it is present at the store, and which resources it holds. */
export class Leases {
  readonly #ports: LeasePorts;
  readonly #leaseMs: number;
  /** Leases given back while a claim's answer was on its way: that answer is older than the giving back. */
  readonly #givenBack = new Map<string, number>();
  #claimsUnderWay = 0;
  #owner: string | null = null;

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
    await this.#ports.store.attend(owner, () => {
      gone = true;
      if (this.#owner !== owner) return;
      this.#owner = null;
      this.#ports.observe({ kind: "presence lost" });
      // Others may take over from now on, so nothing here counts any more.
      for (const cell of [...this.#ports.cells.all()]) this.lose(cell);
      lost();
    });
    if (gone) throw new JournalError("store-unavailable", "the store lost sight of this engine as soon as it came");
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

  /** Whether a record as it was read names this engine under the epoch that the cell holds. */
  isOurs(cell: Cell, record: StoredRecord | undefined): boolean {
    if (cell.held === undefined || record === undefined || this.#owner === null) return false;
    return record.epoch === cell.held.epoch && record.lease?.owner === this.#owner;
  }

  /**
   * A claim's answer has come: takes the lease, unless the answer only tells of new work for a lease that is held, or was when the
   * claim was made. Within the cell's turn. Answers whether the cell holds a lease now.
   */
  adopt(cell: Cell, record: StoredRecord): "new" | "held" | "none" {
    if (cell.held?.epoch === record.epoch) return "held";
    // An answer that was overtaken: what is held now is newer.
    if (cell.held !== undefined && cell.held.epoch > record.epoch) return "none";
    if (record.epoch <= (this.#givenBack.get(record.key) ?? -1) || record.lease?.owner !== this.#owner) return "none";
    this.lose(cell);
    this.take(cell, record);
    return "new";
  }

  /** To be called around a claim and the adopting of what it brought. */
  claimBegins(): void {
    this.#claimsUnderWay++;
  }

  claimEnds(): void {
    if (--this.#claimsUnderWay === 0) this.#givenBack.clear();
  }

  take(cell: Cell, { epoch, lease }: StoredRecord): void {
    cell.held = { epoch, until: lease?.until ?? 0 };
    this.#ports.cells.enter(cell.key);
  }

  /** The lease is over, by a commit that said so. */
  drop(cell: Cell): void {
    if (cell.held === undefined) return;
    if (this.#claimsUnderWay > 0) this.#givenBack.set(cell.key, cell.held.epoch);
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

  /** Reads whether the cell's lease still stands, and lets go of it if not. Within the cell's turn. */
  async stands(cell: Cell): Promise<boolean> {
    if (cell.held === undefined) return false;
    if (cell.snapshot === undefined) await this.#ports.writer.refresh(cell);
    if (this.isOurs(cell, cell.snapshot?.record)) return true;
    this.lose(cell);
    return false;
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
    const at = typeof dueAt === "number" && dueAt <= time.now() ? "now" : dueAt;
    await writer.persist(
      "release",
      () => store.release(owner, [{ key: cell.key, epoch, seq: record.seq, dueAt: at }]),
      options,
    );
    return at === "now" ? time.now() : at;
  }

  /**
   * Makes sure before an effect that the lease runs for a while yet. After a pause of the whole process it may be over without
   * anything here having noticed.
   */
  async confirm(cell: Cell, attempt: Attempt, options: WriteOptions): Promise<void> {
    const marginMs = Math.min(1_000, this.#leaseMs / 5);
    const runsForAWhile = () => cell.held !== undefined && cell.held.until - this.#ports.time.now() > marginMs;
    // Looked at again after each answer: it may have come so late that what it says is over, too.
    while (!runsForAWhile()) {
      await cell.serial(async () => {
        const owner = this.#owner;
        if (cell.held === undefined || owner === null || cell.attempts.get(attempt.operation.id) !== attempt) return;
        const held = [{ key: cell.key, epoch: cell.held.epoch }];
        const asked = this.#ports.time.now();
        const ask = () => this.#ports.store.renew(owner, held, this.#leaseMs);
        const kept = await this.#ports.writer.persist("renew", ask, options);
        if (kept.length === 0) this.lose(cell);
        else if (cell.held !== undefined) cell.held.until = asked + this.#leaseMs;
      });
      if (attempt.interrupted !== undefined) return;
      if (this.#owner === null || cell.held === undefined || cell.attempts.get(attempt.operation.id) !== attempt)
        throw new JournalError("lease-lost");
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

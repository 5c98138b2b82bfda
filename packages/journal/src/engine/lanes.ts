/**
 * Bounded concurrency, over all and per class of work: a service that hangs fills its own lane and leaves the others theirs.
 * A place is taken before the lease is, so that an engine never holds more than it can run.
 */
export class Lanes {
  readonly #total: number;
  readonly #perLane: number;
  readonly #taken = new Map<string, number>();
  #all = 0;
  #paused: ReadonlySet<string> = new Set();
  /** The same for all processes, and how much of a lane with a limit is this one's, until when. */
  #pausedEverywhere: ReadonlySet<string> = new Set();
  #shares: ReadonlyMap<string, number> = new Map();
  #sharesUntil = 0;
  /** Since when nothing has become free, over all and in lanes. */
  #fullSince: number | null = null;
  readonly #laneFullSince = new Map<string, number>();
  readonly #now: () => number;

  constructor(total: number, perLane: number, now: () => number) {
    this.#total = total;
    this.#perLane = Math.min(perLane, total);
    this.#now = now;
  }

  get running(): number {
    return this.#all;
  }

  get free(): number {
    return this.#total - this.#all;
  }

  get laneRoom(): number {
    return Math.min(this.#perLane, this.free);
  }

  /** The lanes that have less room than `laneRoom`. */
  rooms(): ReadonlyMap<string, number> {
    const rooms = new Map<string, number>();
    for (const [lane, taken] of this.#taken) rooms.set(lane, Math.min(this.#perLane - taken, this.free));
    for (const lane of this.#shares.keys()) rooms.set(lane, this.#roomIn(lane));
    for (const lane of this.#paused) rooms.set(lane, 0);
    for (const lane of this.#pausedEverywhere) rooms.set(lane, 0);
    return rooms;
  }

  /** From now on nothing begins in these, and in no others than these; what runs in them goes on. */
  pause(lanes: ReadonlySet<string>): void {
    this.#paused = new Set(lanes);
  }

  isPaused(lane: string): boolean {
    return this.#paused.has(lane) || this.#pausedEverywhere.has(lane);
  }

  /**
   * The rules that hold in all processes, and this one's shares of the lanes that have a limit. They lapse by themselves: whoever renews
   * them may be kept waiting, and what begins later would run beside what others begin.
   */
  share(paused: ReadonlySet<string>, shares: ReadonlyMap<string, number>, until: number): void {
    this.#pausedEverywhere = paused;
    this.#shares = shares;
    this.#sharesUntil = until;
  }

  /** Since when this process could not have begun anything in the lane, whatever its share; `null`: it could now. */
  fullSince(lane: string): number | null {
    if (this.#paused.has(lane)) return 0;
    return this.#fullSince ?? this.#laneFullSince.get(lane) ?? null;
  }

  /** What runs in each lane. */
  get taken(): ReadonlyMap<string, number> {
    return this.#taken;
  }

  hasRoom(lane: string): boolean {
    return this.#roomIn(lane) > 0;
  }

  tryEnter(lane: string): boolean {
    if (!this.hasRoom(lane)) return false;
    this.#taken.set(lane, (this.#taken.get(lane) ?? 0) + 1);
    this.#all++;
    if (this.free === 0) this.#fullSince = this.#now();
    if (this.#taken.get(lane) === this.#perLane) this.#laneFullSince.set(lane, this.#now());
    return true;
  }

  /** Whether an operation that got its place a while ago may still begin: its share may have lapsed since, and be another's. */
  mayBegin(lane: string): boolean {
    return (this.#taken.get(lane) ?? 0) <= this.#shareOf(lane);
  }

  leave(lane: string): void {
    const taken = (this.#taken.get(lane) ?? 0) - 1;
    if (taken > 0) this.#taken.set(lane, taken);
    else this.#taken.delete(lane);
    this.#all--;
    this.#fullSince = null;
    this.#laneFullSince.delete(lane);
  }

  #roomIn(lane: string): number {
    if (this.isPaused(lane)) return 0;
    const most = Math.min(this.#perLane, this.#shareOf(lane));
    return Math.max(0, Math.min(most - (this.#taken.get(lane) ?? 0), this.free));
  }

  #shareOf(lane: string): number {
    const share = this.#shares.get(lane);
    if (share === undefined) return Number.POSITIVE_INFINITY;
    return this.#now() < this.#sharesUntil ? share : 0;
  }
}

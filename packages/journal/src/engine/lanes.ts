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
  /** The same for all processes, and how much of a lane with a limit is this one's. */
  #pausedEverywhere: ReadonlySet<string> = new Set();
  #shares: ReadonlyMap<string, number> = new Map();

  constructor(total: number, perLane: number) {
    this.#total = total;
    this.#perLane = Math.min(perLane, total);
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

  /** The rules that hold in all processes, and this one's shares of the lanes that have a limit. */
  share(paused: ReadonlySet<string>, shares: ReadonlyMap<string, number>): void {
    this.#pausedEverywhere = paused;
    this.#shares = shares;
  }

  /** What runs in each lane. */
  get taken(): ReadonlyMap<string, number> {
    return this.#taken;
  }

  /** Whether something runs in a lane that has no room: claims pass it over, so that no word of it comes with one. */
  get runsWithoutRoom(): boolean {
    for (const lane of this.#taken.keys()) if (!this.hasRoom(lane)) return true;
    return false;
  }

  hasRoom(lane: string): boolean {
    return this.#roomIn(lane) > 0;
  }

  tryEnter(lane: string): boolean {
    if (!this.hasRoom(lane)) return false;
    this.#taken.set(lane, (this.#taken.get(lane) ?? 0) + 1);
    this.#all++;
    return true;
  }

  leave(lane: string): void {
    const taken = (this.#taken.get(lane) ?? 0) - 1;
    if (taken > 0) this.#taken.set(lane, taken);
    else this.#taken.delete(lane);
    this.#all--;
  }

  #roomIn(lane: string): number {
    if (this.isPaused(lane)) return 0;
    const most = Math.min(this.#perLane, this.#shares.get(lane) ?? this.#perLane);
    return Math.max(0, Math.min(most - (this.#taken.get(lane) ?? 0), this.free));
  }
}

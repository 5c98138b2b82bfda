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
    for (const lane of this.#paused) rooms.set(lane, 0);
    return rooms;
  }

  /** From now on nothing begins in these, and in no others than these; what runs in them goes on. */
  pause(lanes: ReadonlySet<string>): void {
    this.#paused = new Set(lanes);
  }

  isPaused(lane: string): boolean {
    return this.#paused.has(lane);
  }

  /** Whether something runs in a lane that has no room: claims pass it over, so that no word of it comes with one. */
  get runsWithoutRoom(): boolean {
    for (const lane of this.#taken.keys()) if (!this.hasRoom(lane)) return true;
    return false;
  }

  hasRoom(lane: string): boolean {
    return this.free > 0 && !this.#paused.has(lane) && (this.#taken.get(lane) ?? 0) < this.#perLane;
  }

  tryEnter(lane: string): boolean {
    const taken = this.#taken.get(lane) ?? 0;
    if (this.free <= 0 || taken >= this.#perLane || this.#paused.has(lane)) return false;
    this.#taken.set(lane, taken + 1);
    this.#all++;
    return true;
  }

  leave(lane: string): void {
    const taken = (this.#taken.get(lane) ?? 0) - 1;
    if (taken > 0) this.#taken.set(lane, taken);
    else this.#taken.delete(lane);
    this.#all--;
  }
}

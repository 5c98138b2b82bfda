/** What a claim that walked from the start of every lane found, if it had to step over many entries of the index. */
export interface CrowdedWalk {
  /** The store's time. */
  readonly at: number;
  /** Entries of the index that it read. */
  readonly entries: number;
  /** The earliest due time of each lane. */
  readonly lanes: ReadonlyMap<string, number>;
  /** The earliest due time after it. */
  readonly nextDueAt: number | null;
}

/** Where claims begin in each lane, and for how long they may. */
export interface Floors {
  readonly lanes: ReadonlyMap<string, number>;
  /** Due times that are known: the earliest that is to come is the next. */
  readonly dueAts: readonly number[];
  /** So long until a claim must walk from the start. */
  readonly forMs: number;
}

/** A walk that reads more entries than this has met those that are dead: of what lives it reads a few in each lane. */
export const crowdedEntries = 2_000;

/** A floor is so much earlier than the walk: for clocks that differ, and for commits that were under way. */
const slackMs = 1_000;
const shortestRestMs = 1_000;
const longestRestMs = 5_000;
const maxLanes = 1_000;
const maxDueAts = 1_000;

/**
 * Lets claims begin where there is something to find (J10). Every claim leaves dead entries in the index of due times, before those that
 * live. While someone holds an old snapshot (a backup, a forgotten transaction) neither vacuum nor the scans themselves can clear them
 * away, and each claim would step over all of them again: at the start of a lane, and between now and the next due time.
 *
 * So after a walk that met many of them, claims look for a while only at the known lanes, from a floor up to now. What such a claim
 * cannot see, and why nothing stays unseen for long:
 *
 * - Due earlier than the floor. Who commits, releases, frees or restores says "now" or later, on the store's clock or an estimate of it,
 *   and the floor is not above what was there at the walk, nor above the walk's time less a slack. After an earlier time of this process the next claim walks.
 *   A clock that is further off in another process, or a commit that took longer than the slack, stays unseen until the next walk.
 * - In a lane in which nothing had a due time at the walk, as far as this process did not commit it and has no room set for it.
 * - The next due time, if another process committed it. But the claims that come when it is due see it.
 *
 * The next walk comes after 1 to 5 seconds, the longer the more it has to read, and claims answer its time as the next due time, so that
 * the engine comes for it. 5 seconds is also how often it looks for work whose wake-up was lost.
 */
export class DueFloors {
  readonly #monotonicMs: () => number;
  readonly #lanes = new Map<string, number>();
  #dueAts: number[] = [];
  #newLaneFloor = 0;
  #walkAgainAtMs = 0;

  constructor(monotonicMs: () => number = () => performance.now()) {
    this.#monotonicMs = monotonicMs;
  }

  /** `undefined`: this claim walks from the start, and sees what was set until now. `rooms`: lanes that are asked for by name. */
  floors(rooms: Iterable<string>): Floors | undefined {
    const forMs = Math.ceil(this.#walkAgainAtMs - this.#monotonicMs());
    if (forMs <= 0) {
      this.#dueAts = [];
      return undefined;
    }
    for (const lane of rooms) this.add(lane);
    return { lanes: this.#lanes, dueAts: this.#dueAts, forMs };
  }

  learn({ at, entries, lanes, nextDueAt }: CrowdedWalk): void {
    this.#newLaneFloor = at - slackMs;
    for (const lane of this.#lanes.keys()) this.#lanes.set(lane, this.#newLaneFloor);
    for (const [lane, first] of lanes) this.#lanes.set(lane, Math.min(first, this.#newLaneFloor));
    // Set while the walk was under way, which may not have seen it.
    const isBelow = this.#dueAts.some((dueAt) => dueAt < this.#newLaneFloor);
    if (nextDueAt !== null) this.#dueAts.push(nextDueAt);
    const restMs = Math.min(longestRestMs, Math.max(shortestRestMs, entries / 100));
    if (this.#lanes.size <= maxLanes && !isBelow) this.#walkAgainAtMs = this.#monotonicMs() + restMs;
  }

  /** This process has, or may have, set work in a lane, whose due time is not earlier than before. */
  add(lane: string): void {
    if (this.#lanes.has(lane)) return;
    this.#lanes.set(lane, this.#newLaneFloor);
    if (this.#lanes.size <= maxLanes) return;
    this.#lanes.clear();
    this.forget();
  }

  /** This process has, or may have, set a due time, in a lane or (`null`) in one that is known. */
  lower(lane: string | null, dueAt: number): void {
    if (lane !== null) this.add(lane);
    if (dueAt < this.#newLaneFloor) this.forget();
    this.#dueAts.push(dueAt);
    // Without the later ones: when an earlier one is due a claim sees all that is due by then.
    if (this.#dueAts.length > maxDueAts) this.#dueAts = this.#dueAts.sort((a, b) => a - b).slice(0, maxDueAts / 2);
  }

  /** The store's clock has come so far. */
  passed(now: number): void {
    this.#dueAts = this.#dueAts.filter((dueAt) => dueAt > now);
  }

  /** Something may be due that the floors do not show: the next claim walks. */
  forget(): void {
    this.#walkAgainAtMs = 0;
  }
}

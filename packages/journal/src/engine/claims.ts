import type { Clock } from "../clock.js";
import { nextDelayMs } from "../decisions/backoff.js";
import type { CrashPoint, Observe } from "../observe.js";
import type { Store, StoredRecord } from "../store.js";
import type { Lanes } from "./lanes.js";
import type { Leases } from "./leases.js";
import type { PassedOver } from "./passed-over.js";
import type { StoreTime } from "./time.js";

export interface ClaimPorts {
  readonly store: Store;
  readonly clock: Clock;
  readonly time: StoreTime;
  readonly lanes: Lanes;
  readonly leases: Leases;
  readonly passedOver: PassedOver;
  readonly random: () => number;
  readonly observe: Observe;
  readonly reached: (point: CrashPoint) => void;
  /** Begins to work on a claimed resource; resolves when that has begun. */
  readonly adopt: (record: StoredRecord) => Promise<void>;
  /** Looks whether others have changed what is held. */
  readonly lookAtHeld: () => void;
  /** Whether this engine knows that it holds the resource. */
  readonly isHeld: (key: string) => boolean;
  /** Reads the resource, and begins to work on it if it is this engine's. */
  readonly lookAfterDoubt: (key: string) => void;
}

/** Claims in one call of the store at most. */
const claimBatch = 128;
const backoff = { firstMs: 50, factor: 2, longestMs: 2_000 };
/** Leases that are looked for in one call of the store. */
const heldPage = 500;
/** Between looks for leases that this engine was given without hearing of it. */
const doubtPauseMs = 1_000;

/**
 * Looks for due resources: when told to, when the next one is due, and now and then where others may have left some. Between looks
 * there is one timer, whatever waits (J5).
 */
export class Claims {
  readonly #ports: ClaimPorts;
  #alarm: { readonly at: number; readonly callOff: () => void } | undefined;
  #awake = false;
  #looking = false;
  #lookAgain = false;
  #failures = 0;
  /** Lanes whose room the last claim may have used up: there may be more due in them than it brought. */
  #cut: ReadonlySet<string> | "all" = new Set();
  /** While an answer that may have given this engine leases is missing: when to look for them next, and until when. */
  #doubt: { readonly nextAt: number; readonly until: number } | undefined;
  #idle: Promise<void> = Promise.resolve();

  constructor(ports: ClaimPorts) {
    this.#ports = ports;
  }

  begin(): void {
    this.#awake = true;
    this.look();
  }

  /** Resolves when what was being claimed has been dealt with. */
  end(): Promise<void> {
    this.#awake = false;
    this.#alarm?.callOff();
    this.#alarm = undefined;
    return this.#idle;
  }

  /** A place in a lane has become free: there may be work that waited for it. */
  placeFreed(lane: string): void {
    if (this.#looking || this.#cut === "all" || this.#cut.has(lane)) this.look();
  }

  /** There may be work: looks now, or once more if it is looking. */
  look(): void {
    this.#lookAgain = true;
    if (this.#awake && !this.#looking) this.#idle = this.#lookRepeatedly();
  }

  /** Looks at that time at the latest. */
  lookBy(at: number | null): void {
    if (at === null || !this.#awake || (this.#alarm !== undefined && this.#alarm.at <= at)) return;
    this.#alarm?.callOff();
    const callOff = this.#ports.clock.after(Math.max(0, at - this.#ports.time.now()), () => {
      this.#alarm = undefined;
      this.look();
    });
    this.#alarm = { at, callOff };
  }

  /**
   * An answer that may have given this engine leases has not come. What was asked may reach the store later still, but not after such a
   * lease would be over: so leases under its own name of which it does not know are looked for now and then until that time.
   */
  doubt(): void {
    this.#beginDoubt();
    this.lookBy(this.#ports.time.now() + backoff.firstMs);
  }

  #beginDoubt(): void {
    const now = this.#ports.time.now();
    this.#doubt = { nextAt: now, until: now + this.#ports.leases.leaseMs };
  }

  async #lookForUnheard(): Promise<void> {
    const { store, time, leases, isHeld, lookAfterDoubt, lookAtHeld } = this.#ports;
    const doubt = this.#doubt;
    const now = time.now();
    const { owner } = leases;
    if (doubt === undefined || owner === null || now < doubt.nextAt) return;
    for (let after: string | null = null; ; ) {
      const page: readonly string[] = await store.heldBy(owner, { after, limit: heldPage });
      for (const key of page) if (!isHeld(key)) lookAfterDoubt(key);
      after = page.at(-1) ?? null;
      if (page.length < heldPage) break;
    }
    // A claim also takes note of what others did to resources that are held: that was in the answer, too.
    lookAtHeld();
    // A doubt that has come up meanwhile stays.
    if (this.#doubt !== doubt) return;
    this.#doubt = now > doubt.until ? undefined : { nextAt: now + doubtPauseMs, until: doubt.until };
    this.lookBy(this.#doubt?.nextAt ?? null);
  }

  /** Whatever becomes of it: what can be claimed without it is claimed. */
  async #lookAround(): Promise<void> {
    const { passedOver, observe } = this.#ports;
    try {
      await passedOver.look();
    } catch (error) {
      observe({ kind: "store failed", doing: "look around", error });
    }
    this.lookBy(passedOver.nextAt);
  }

  async #lookRepeatedly(): Promise<void> {
    this.#looking = true;
    while (this.#lookAgain && this.#awake) {
      this.#lookAgain = false;
      await this.#claim();
    }
    this.#looking = false;
  }

  async #claim(): Promise<void> {
    const { store, time, lanes, leases, passedOver, reached, observe, random, adopt, lookAtHeld } = this.#ports;
    const limit = Math.min(lanes.free, claimBatch);
    if (store.pace.pollMs !== null) this.lookBy(time.now() + store.pace.pollMs);
    // Claims pass over what has no room. What is held already may have been cancelled all the same, and in whichever lane it is found.
    const rooms = lanes.rooms();
    const passesOver = isAnyFull(rooms);
    if (limit === 0 || passesOver) lookAtHeld();
    if (limit === 0) this.#cut = "all";
    // Without a name its return leads to the next look.
    if (limit === 0 || leases.owner === null) return;
    const { laneRoom } = lanes;
    const over = leases.claimBegins();
    const adopted: Promise<void>[] = [];
    try {
      await this.#lookForUnheard();
      if (passesOver) await this.#lookAround();
      // The name may have been lost meanwhile: a lease without one is nobody's.
      const { owner } = leases;
      if (owner === null) return;
      const askedAt = time.asks();
      const answer = await store.claim({
        owner,
        leaseMs: leases.leaseMs,
        limit,
        laneRoom,
        rooms,
      });
      reached("after claim");
      time.learn(answer.now, askedAt);
      this.#failures = 0;
      for (const record of answer.claimed) adopted.push(adopt(record));
      this.#cut = answer.claimed.length === limit ? "all" : cutLanes(answer.claimed, rooms, laneRoom);
      this.lookBy(answer.nextDueAt);
      // What was claimed has taken its places then: only now is it known how much room is left.
      if (adopted.length > 0) await Promise.allSettled(adopted);
      // This claim may have filled a lane and so passed over more than the look before it knew of.
      if (isAnyFull(lanes.rooms())) this.lookBy(passedOver.nextAt);
      this.#lookAgain ||= this.#cut === "all" ? lanes.free > 0 : [...this.#cut].some((lane) => lanes.hasRoom(lane));
    } catch (error) {
      if (!this.#awake) return;
      observe({ kind: "store failed", doing: "claim", error });
      this.#beginDoubt();
      this.lookBy(time.now() + nextDelayMs(++this.#failures, random, backoff));
    } finally {
      void Promise.allSettled(adopted).then(over);
    }
  }
}

function isAnyFull(rooms: ReadonlyMap<string, number>): boolean {
  return [...rooms.values()].some((room) => room <= 0);
}

/** Lanes of which as many were claimed as there was room for, none included. */
function cutLanes(
  claimed: readonly StoredRecord[],
  rooms: ReadonlyMap<string, number>,
  laneRoom: number,
): ReadonlySet<string> {
  const left = new Map(rooms);
  for (const { lane } of claimed) left.set(lane, (left.get(lane) ?? laneRoom) - 1);
  return new Set([...left].filter(([, room]) => room <= 0).map(([lane]) => lane));
}

import type { Socket } from "node:net";

/** How long connections are kept, and how far they are trusted. */
export interface Keeping {
  /** So long one is kept that nobody uses. */
  readonly idleMs: number;
  /** A change is written to one that has not been idle for longer. Servers close what is idle for seconds, and mostly say so before. */
  readonly idleForChangesMs: number;
  /** So long no change is written to a kept one after the other side has closed one unasked. */
  readonly distrustMs: number;
  /** Of one origin. */
  readonly most: number;
}

export const usualKeeping: Keeping = { idleMs: 4_000, idleForChangesMs: 1_000, distrustMs: 60_000, most: 64 };

/**
 * Connections that stand and that nobody uses, by origin. One is given out again only if nothing has come over it since: no end, no error and no
 * byte, because what comes unasked would be taken for the answer to the next request. None of them keeps the process alive.
 */
export class KeptConnections {
  readonly #keeping: Keeping;
  readonly #origins = new Map<string, Origin>();
  /** Those of this turn of the event loop, and of the one before. */
  #given: Kept[] = [];
  #settling: Kept[] = [];
  readonly #waiting: (() => void)[] = [];

  constructor(keeping: Keeping = usualKeeping) {
    this.#keeping = keeping;
  }

  /** The one that was used last. `undefined`: there is none that is fresh enough. */
  take(origin: string, use: "read" | "change"): Socket | undefined {
    const place = this.#origins.get(origin);
    const now = performance.now();
    if (place === undefined || (use === "change" && now < place.distrustedUntil)) return undefined;
    // Asked of the clock as well as of the timer: a process that was stopped wakes up with old connections, and its timers come later.
    const mostIdleMs = use === "read" ? Number.POSITIVE_INFINITY : this.#keeping.idleForChangesMs;
    const kept = place.kept.findLast((one) => use === "read" || one.isSettled);
    if (kept === undefined || now >= kept.until || now - kept.since > mostIdleMs) return undefined;
    release(place, kept);
    return kept.socket.ref();
  }

  /**
   * Takes back a connection whose request was written and answered to the end. `hintMs`: for how long the other side says that it keeps it.
   * A change can have it after a whole turn of the event loop: an end that came with the answer, or just behind it, is seen by then.
   */
  give(origin: string, socket: Socket, hintMs = Number.POSITIVE_INFINITY): void {
    const { idleMs, most } = this.#keeping;
    const place = this.#origins.get(origin) ?? { kept: [], distrustedUntil: 0 };
    this.#origins.set(origin, place);
    // A second less than the other side says: its clock began earlier.
    const keepMs = Math.min(idleMs, hintMs - 1_000);
    if (socket.destroyed || keepMs <= 0) return void socket.destroy();
    const since = performance.now();
    const kept: Kept = {
      ...{ socket, since, until: since + keepMs, isSettled: false },
      timer: setTimeout(() => expire(place, kept), keepMs).unref(),
      drop: () => this.#drop(place, kept),
    };
    for (const event of unasked) socket.on(event, kept.drop);
    socket.unref().resume();
    place.kept.push(kept);
    if (place.kept.length > most && place.kept[0] !== undefined) expire(place, place.kept[0]);
    if (this.#given.push(kept) === 1 && this.#settling.length === 0) setImmediate(this.#turn);
  }

  /** Resolves at once, unless all that there are were given back just now: then after the turn in which a change can have them. */
  async settle(origin: string): Promise<void> {
    const kept = this.#origins.get(origin)?.kept ?? [];
    if (kept.length === 0 || kept.some(({ isSettled }) => isSettled)) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** One that was given out broke before there was an answer. */
  distrust(origin: string): void {
    const place = this.#origins.get(origin);
    if (place !== undefined) place.distrustedUntil = performance.now() + this.#keeping.distrustMs;
  }

  /** What was given in one turn has seen the whole of the next one when this comes round for the second time. */
  readonly #turn = (): void => {
    for (const kept of this.#settling) kept.isSettled = true;
    if (this.#settling.length > 0) for (const resolve of this.#waiting.splice(0)) resolve();
    this.#settling = this.#given;
    this.#given = [];
    if (this.#settling.length > 0) setImmediate(this.#turn);
  };

  /** Whoever closes connections that were hardly idle does so again: also in the moment in which a change is written. */
  #drop(place: Origin, kept: Kept): void {
    const { idleForChangesMs, distrustMs } = this.#keeping;
    const now = performance.now();
    if (now - kept.since <= idleForChangesMs) place.distrustedUntil = now + distrustMs;
    expire(place, kept);
  }
}

function expire(place: Origin, kept: Kept): void {
  release(place, kept);
  kept.socket.destroy();
}

function release(place: Origin, kept: Kept): void {
  clearTimeout(kept.timer);
  for (const event of unasked) kept.socket.off(event, kept.drop);
  place.kept.splice(place.kept.lastIndexOf(kept), 1);
}

/** What comes over a connection on which nothing was asked. */
const unasked = ["data", "end", "error", "close"] as const;

interface Origin {
  /** The last one was used last. */
  readonly kept: Kept[];
  distrustedUntil: number;
}

interface Kept {
  readonly socket: Socket;
  readonly since: number;
  readonly until: number;
  readonly timer: NodeJS.Timeout;
  readonly drop: () => void;
  isSettled: boolean;
}

import { createHash } from "node:crypto";
import type { Clock } from "@osbert/journal";
import { BrokerError } from "@osbert/protocol";
import { BoundedMap } from "./bounded-map.js";
import type { ObserveAuthentication } from "./event.js";

/** How guessing is slowed down. */
export interface SlowDownOptions {
  /** Failures in a row of a user name from an address that are answered at once. Default 5. */
  readonly freeFailures?: number;
  /** The delay of the first failure beyond; each further one doubles it. Default 100. */
  readonly firstDelayMs?: number;
  /** Default 5,000. */
  readonly longestDelayMs?: number;
  /** How long it is kept in mind after the last failure. Default 15 minutes. */
  readonly forgetAfterMs?: number;
  /** How many user names and addresses are kept in mind. Default 10,000. */
  readonly mostKept?: number;
  /** How many answers are held back at a time, of all callers. Default 1,000. */
  readonly mostWaiting?: number;
  /** How many of them with one user name from one address. Default 8. */
  readonly mostWaitingPerName?: number;
}

/** Whose guess it is. */
export interface Guesser {
  /** See `networkOf`; "" where it is not known. */
  readonly network: string;
  readonly name: string;
}

interface Record {
  failures: number;
  lastAtMs: number;
  waiting: number;
  /** Until then nothing of them is even compared. */
  closedUntilMs: number;
}

/** Many user names from one address are guessing, too, if less surely. */
const addressIsFreer = 4;
const addressWaitsFor = 8;

/** The delay before this failure's answer. */
export function delayMs(
  failures: number,
  free: number,
  { firstDelayMs, longestDelayMs }: Required<Pick<SlowDownOptions, "firstDelayMs" | "longestDelayMs">>,
): number {
  if (failures <= free) return 0;
  return Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(failures - free - 1, 30));
}

/**
 * Holds back the answers to those who guess, and refuses them unheard while too many of their answers are held back. What is right is
 * never delayed. Failures count for a user name and an address together, so that nobody can shut out another from elsewhere; and who has
 * got in before is let in by the same credential even while its own address is closed, for others may share that address.
 */
export class SlowDown {
  readonly #options: Required<SlowDownOptions>;
  readonly #clock: Clock;
  readonly #observe: ObserveAuthentication;
  readonly #records: BoundedMap<Record>;
  readonly #gotIn: BoundedMap<true>;
  #lastIn: Guesser | undefined;
  #waiting = 0;

  constructor(options: SlowDownOptions, clock: Clock, observe: ObserveAuthentication) {
    this.#options = {
      freeFailures: 5,
      firstDelayMs: 100,
      longestDelayMs: 5_000,
      forgetAfterMs: 900_000,
      mostKept: 10_000,
      mostWaiting: 1_000,
      mostWaitingPerName: 8,
      ...options,
    };
    this.#clock = clock;
    this.#observe = observe;
    this.#records = new BoundedMap(this.#options.mostKept);
    this.#gotIn = new BoundedMap(this.#options.mostKept);
  }

  /** How long nothing of this caller is compared; 0 in peace. */
  closedForMs(guesser: Guesser): number {
    if (this.#records.size === 0) return 0;
    const now = this.#clock.monotonicMs();
    return Math.max(0, ...keysOf(guesser).map((key) => (this.#records.get(key)?.closedUntilMs ?? now) - now));
  }

  hasGotIn(guesser: Guesser): boolean {
    return this.#gotIn.get(nameKey(guesser)) !== undefined;
  }

  succeeded(guesser: Guesser): void {
    if (this.#records.size > 0) this.#records.delete(nameKey(guesser));
    // The usual caller is the one before: that costs two comparisons.
    if (this.#lastIn?.name === guesser.name && this.#lastIn.network === guesser.network) return;
    this.#lastIn = guesser;
    this.#gotIn.set(nameKey(guesser), true);
  }

  /** Resolves when the failure may be answered. Rejects with a 429 at once where too many wait already. */
  async failed(guesser: Guesser): Promise<void> {
    const { freeFailures, mostWaiting, mostWaitingPerName } = this.#options;
    const [ofName, ofAddress] = keysOf(guesser).map((key) => this.#count(key)) as [Record, Record];
    const delay = Math.max(
      delayMs(ofName.failures, freeFailures, this.#options),
      delayMs(ofAddress.failures, freeFailures * addressIsFreer, this.#options),
    );
    this.#observe({
      kind: "authentication failed",
      network: guesser.network,
      failures: ofName.failures,
      delayMs: delay,
    });
    if (delay === 0) return;
    const nameIsFull = ofName.waiting >= mostWaitingPerName;
    const addressIsFull = ofAddress.waiting >= mostWaitingPerName * addressWaitsFor;
    if (nameIsFull || addressIsFull || this.#waiting >= mostWaiting) {
      // Without this, whoever fills the room could try on at full speed: a 429 would tell them that the guess was wrong.
      // Where the address is not known, all share one: closing it would shut out those who are right.
      if (guesser.network !== "") {
        const closed = addressIsFull && !nameIsFull ? ofAddress : ofName;
        closed.closedUntilMs = this.#clock.monotonicMs() + delay;
      }
      throw this.refusal(guesser, delay);
    }
    await this.#hold([ofName, ofAddress], delay);
  }

  refusal({ network }: Guesser, forMs: number): BrokerError {
    this.#observe({ kind: "guesses refused", network });
    return new BrokerError("too-many-requests", "too many requests could not be authenticated; ask again later", {
      retryAfterSeconds: Math.max(1, Math.ceil(forMs / 1_000)),
    });
  }

  #count(key: string): Record {
    const now = this.#clock.monotonicMs();
    const kept = this.#records.get(key);
    const record = kept ?? { failures: 0, lastAtMs: now, waiting: 0, closedUntilMs: now };
    if (now - record.lastAtMs > this.#options.forgetAfterMs) record.failures = 0;
    record.failures++;
    record.lastAtMs = now;
    if (kept === undefined) this.#records.set(key, record);
    return record;
  }

  async #hold(records: readonly Record[], delay: number): Promise<void> {
    this.#waiting++;
    for (const record of records) record.waiting++;
    await new Promise<void>((resolve) => void this.#clock.after(delay, resolve));
    this.#waiting--;
    for (const record of records) record.waiting--;
  }
}

function keysOf(guesser: Guesser): readonly [ofName: string, ofAddress: string] {
  return [nameKey(guesser), `${guesser.network}\n`];
}

/** A user name from a network. Of bounded length, whatever the name. */
export function nameKey({ network, name }: Guesser): string {
  const short = name.length <= 64 ? `=${name}` : createHash("sha256").update(name).digest("base64");
  return `${network}\n${short}`;
}

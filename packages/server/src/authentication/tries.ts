import type { Clock } from "@osbert/journal";
import { BoundedMap } from "./bounded-map.js";
import { widerNetworkOf } from "./network-address.js";
import type { Rank } from "./turns.js";

interface Count {
  tries: number;
  lastAtMs: number;
}

/** As many as failures are kept in mind; see slow-down.ts. */
const mostKept = 10_000;
const forgetAfterMs = 900_000;

/**
 * How often each network has asked for a password to be checked since one was right. It is counted when it is asked, not when it is
 * answered: what waits, and what was refused for want of room, has been a try, too. There are no user names in it: a guesser who knows
 * one could otherwise use up its owner's turns.
 */
export class Tries {
  readonly #clock: Clock;
  readonly #from: BoundedMap<Count> = new BoundedMap(mostKept);
  /** Apart, so that fresh addresses in any number do not make room for themselves here. */
  readonly #around: BoundedMap<Count> = new BoundedMap(mostKept);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** One more. Answers what went before it. */
  begin(network: string): Rank {
    const around = this.#add(this.#around, widerNetworkOf(network));
    return { tries: this.#add(this.#from, network).tries - 1, around };
  }

  /** It was right, hence no guess; and neither were those before it, from someone who has mistyped. */
  succeeded(network: string): void {
    const around = this.#around.get(widerNetworkOf(network));
    if (around !== undefined) around.tries = Math.max(0, around.tries - (this.#from.get(network)?.tries ?? 0));
    this.#from.delete(network);
  }

  #add(counts: BoundedMap<Count>, network: string): Count {
    const now = this.#clock.monotonicMs();
    const kept = counts.get(network);
    const count = kept ?? { tries: 0, lastAtMs: now };
    if (now - count.lastAtMs > forgetAfterMs) count.tries = 0;
    count.tries++;
    count.lastAtMs = now;
    if (kept === undefined) counts.set(network, count);
    return count;
  }
}

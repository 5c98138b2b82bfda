import type { Clock } from "../../src/clock.js";
import type { Journal } from "../../src/journal.js";
import type { ManualClock } from "../../src/testing/index.js";
import type { Wire } from "./wire.js";

export type Slot = 1 | 2 | 3;

/** One process with one journal. 1 and 2 run operations; 3 only accepts and asks. */
export class Process {
  readonly slot: Slot;
  readonly label: string;
  readonly wire: Wire;
  /** The names under which its engine holds leases. */
  readonly owners = new Set<string>();
  phase: "starting" | "up" | "stopping" | "dead" = "starting";
  /** It has closed the store, and must not call it any more. */
  closed = false;
  /** As the store calls it when it loses sight of the process. */
  lost: () => void = () => undefined;
  #journal: Journal | undefined;

  constructor(slot: Slot, life: number, wire: Wire) {
    const name = slot === 3 ? "the front desk" : `engine ${slot}`;
    this.slot = slot;
    this.label = life === 1 ? name : `${name} (life ${life})`;
    this.wire = wire;
  }

  get journal(): Journal {
    if (this.#journal === undefined) throw new Error(`${this.label} has no journal yet`);
    return this.#journal;
  }

  set journal(journal: Journal) {
    this.#journal = journal;
  }

  get answers(): boolean {
    return this.phase === "up" && !this.wire.frozen;
  }

  toString(): string {
    return this.label;
  }
}

/** The clock as a process sees it: while it is frozen its timers are late. */
export function clockOf(clock: ManualClock, wire: Wire): Clock {
  return {
    monotonicMs: () => clock.monotonicMs(),
    after(ms, wake) {
      let calledOff = false;
      const callOff = clock.after(ms, () => wire.whenAwake(() => calledOff || wake()));
      return () => {
        calledOff = true;
        callOff();
      };
    },
  };
}

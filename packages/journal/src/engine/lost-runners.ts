import { nextDelayMs } from "../decisions/backoff.js";
import type { Draft } from "../decisions/draft.js";
import { runnable } from "../decisions/schedule.js";
import { withoutHurry } from "../decisions/waits.js";
import { becauseOf } from "../operation.js";
import type { ResourceState } from "../state.js";
import type { StoredRecord } from "../store.js";
import type { Cell } from "./cell.js";
import type { StoreTime } from "./time.js";

export interface LostRunnersPorts {
  readonly time: StoreTime;
  readonly random: () => number;
  /** A change of a held resource, within its cell's turn. */
  readonly write: (cell: Cell, write: (draft: Draft) => void) => Promise<void>;
}

/** So many runners in a row that recorded nothing: what they ran is tried later, or it takes every process down with it. */
const lostRunnersBeforeBackoff = 20;

/** Whether so many runners in a row have recorded nothing that what they ran may have taken them down. */
export function mayBePoisonous({ epoch }: StoredRecord, { heldEpoch }: ResourceState): boolean {
  return epoch - heldEpoch >= lostRunnersBeforeBackoff;
}

/** Tells from a record how many runners in a row have recorded nothing, and does something about it. */
export class LostRunners {
  readonly #ports: LostRunnersPorts;

  constructor(ports: LostRunnersPorts) {
    this.#ports = ports;
  }

  /** Many runners in a row came and went without recording anything: what they ran may have taken them down. It has to wait. */
  async backOffIfPoisonous(cell: Cell): Promise<void> {
    if (!cell.snapshot || cell.held === undefined || cell.attempts.size > 0) return;
    const { record, state } = cell.snapshot;
    if (!mayBePoisonous(record, state)) return;
    const suspects = runnable(state, this.#now());
    if (suspects.length === 0) return;
    await this.#ports.write(cell, (draft) => {
      for (const { id } of suspects) {
        const open = draft.state.open.find((operation) => operation.id === id);
        if (open === undefined) continue;
        const until = this.#now() + nextDelayMs(open.failures + 1, this.#ports.random);
        const error = "several runners in a row ended without recording anything";
        // Told to hurry or not: the next process would be taken down, too.
        draft.retry(withoutHurry(open), until, error, becauseOf(open));
      }
    });
  }

  /**
   * Whoever gives a resource back because there is no room has recorded nothing, like a runner that is lost. Before it is taken for one
   * too often, the resource is told that nothing was lost.
   */
  async deny(cell: Cell): Promise<void> {
    if (!cell.snapshot || cell.held === undefined) return;
    const { record, state } = cell.snapshot;
    if (record.epoch - state.heldEpoch < lostRunnersBeforeBackoff / 2) return;
    await this.#ports.write(cell, (draft) => draft.touch("there was no room to run it"));
  }

  #now(): number {
    return this.#ports.time.now();
  }
}

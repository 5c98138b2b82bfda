import type { ResourceState } from "../state.js";
import type { StoredRecord } from "../store.js";
import type { Attempt } from "./attempt.js";

/** A record as it was last seen, with its text read. */
export interface Snapshot {
  readonly record: StoredRecord;
  readonly state: ResourceState;
}

/**
 * One resource as this process knows it, for as long as someone here is busy with it. All changes of the resource by this process
 * go through its cell one after the other: they never conflict with each other, only with those of other processes.
 */
export class Cell {
  readonly key: string;
  /** `null`: it does not exist. `undefined`: not known, read it. */
  snapshot: Snapshot | null | undefined;
  /** The lease that this process's engine holds on it. */
  held: { epoch: number; until: number } | undefined;
  /** Wakes its runner for what is due beside what runs. */
  alarm: (() => void) | undefined;
  /** Attempts of this process on the resource's operations, by operation. */
  readonly attempts = new Map<string, Attempt>();
  users = 0;
  #tail: Promise<unknown> = Promise.resolve();

  constructor(key: string) {
    this.key = key;
  }

  /** Runs `work` when everything before it is over, whatever became of that. */
  serial<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#tail.then(work);
    this.#tail = turn.then(nothing, nothing);
    return turn;
  }
}

function nothing(): void {}

/** The cells in use. Bounded by what the process is busy with: a cell goes when its last user does. */
export class Cells {
  readonly #cells = new Map<string, Cell>();

  get(key: string): Cell | undefined {
    return this.#cells.get(key);
  }

  all(): Iterable<Cell> {
    return this.#cells.values();
  }

  enter(key: string): Cell {
    let cell = this.#cells.get(key);
    if (cell === undefined) {
      cell = new Cell(key);
      this.#cells.set(key, cell);
    }
    cell.users++;
    return cell;
  }

  leave(cell: Cell): void {
    if (--cell.users === 0) this.#cells.delete(cell.key);
  }
}

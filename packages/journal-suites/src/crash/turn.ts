import { machineMs } from "./witness.js";

/**
 * A monotonic clock that remembers when the turn of the event loop began in which it was read. An engine looks at its clock to see that
 * its lease still runs, and then lets an effect begin in the same turn. If the process was stopped in between, it could not know.
 */
export class Turn {
  /** When the turn of the last reading began. */
  at = 0;
  #over = true;

  read(): number {
    if (this.#over) {
      this.#over = false;
      this.at = machineMs();
      setImmediate(() => {
        this.#over = true;
      });
    }
    return performance.now();
  }
}

import type { FinishedOperation, Outcome } from "../operation.js";

export interface Ended {
  readonly operation: FinishedOperation;
  readonly outcome: Outcome;
}

/** Those in this process who wait for an operation to end. An end that was recorded elsewhere has to be read. */
export class Waiters {
  readonly #waiters = new Map<string, Set<(ended: Ended) => void>>();

  wait(operation: string, tell: (ended: Ended) => void): () => void {
    const tellers = this.#waiters.get(operation) ?? new Set();
    this.#waiters.set(operation, tellers.add(tell));
    return () => {
      tellers.delete(tell);
      if (tellers.size === 0) this.#waiters.delete(operation);
    };
  }

  tell(ended: Ended): void {
    for (const tell of this.#waiters.get(ended.operation.id) ?? []) tell(ended);
  }
}

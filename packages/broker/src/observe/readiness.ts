import type { JournalEvent, Store, StoreAnswered } from "@osbert/journal";

/** What never exists: looking for it costs a look and changes nothing. */
const probeKey = "osbert/readiness";

/** What is asked of the store beside reading. */
export interface WriteProbe {
  /** A change that leaves nothing worth keeping. Rejects where the store does not take it. */
  write(): Promise<void>;
}

/**
 * Looks whether a store answers, and takes what is written. Several who ask at a time share one look, so that a store that hangs is not
 * asked ever more.
 *
 * Reading alone does not tell: from a full disk, or a server that has become somebody's read-only replica, all can be read. Writing on
 * every look would cost each idle broker a durable write every few seconds. So a write is tried only after one has failed, and then at
 * every look, until one succeeds. Smaller ones that succeed meanwhile do not count: on a full disk some still do.
 */
export class StoreProbe {
  readonly #store: Store;
  readonly #withinMs: number;
  #isInDoubt = false;
  #looking: Promise<string | null> | undefined;

  constructor(store: Store, withinMs: number) {
    this.#store = store;
    this.#withinMs = withinMs;
  }

  /** To be told of every answer of the store, where someone measures them. */
  notice({ call, failed }: StoreAnswered): void {
    if (call === "commit" && failed) this.#isInDoubt = true;
  }

  /** To be told of what the journal tells: a commit that failed is tried again there, and told of once. */
  noticeEvent(event: JournalEvent): void {
    if (event.kind === "store failed" && event.doing === "commit") this.#isInDoubt = true;
  }

  /** What is wrong with the store, for a person; `null`: nothing is known. */
  trouble(probe: WriteProbe): Promise<string | null> {
    this.#looking ??= this.#look(probe).finally(() => {
      this.#looking = undefined;
    });
    return within(this.#looking, this.#withinMs, `the store has not answered within ${this.#withinMs} ms`);
  }

  async #look(probe: WriteProbe): Promise<string | null> {
    try {
      await this.#store.read(probeKey, []);
    } catch {
      return "the store does not answer";
    }
    if (!this.#isInDoubt) return null;
    try {
      await probe.write();
    } catch {
      return "the store does not take what is written";
    }
    this.#isInDoubt = false;
    return null;
  }
}

/** The answer, or `otherwise` when it takes too long. */
export function within<T, Late>(work: Promise<T>, ms: number, otherwise: Late): Promise<T | Late> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(otherwise), ms);
    timer.unref();
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

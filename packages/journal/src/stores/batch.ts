import { setImmediate } from "node:timers";

export interface BatcherOptions<Item, Result> {
  /**
   * Carries out one batch. Answers one result an item, in the order of the items. If it rejects, each item of the
   * batch is rejected with that error; other batches are not touched. What concerns one item alone belongs into its
   * result; a result that is an error rejects that item.
   */
  readonly run: (items: readonly Item[]) => Promise<readonly (Result | Error)[]>;
  /** At most so many items in a batch. */
  readonly maxItems: number;
  /** At most so many batches under way. Default 1. */
  readonly inFlight?: number;
  /**
   * Items of one key run one after the other, in the order they were added: never two in a batch, nor in two batches
   * under way.
   */
  readonly keyOf?: (item: Item) => string;
  /**
   * With `maxWeight`: the weights of a batch's items stay within it, but an item that is too heavy by itself goes
   * alone.
   */
  readonly weightOf?: (item: Item) => number;
  readonly maxWeight?: number;
  /**
   * Whether so many that are ready go as one batch for each free place, instead of all with the first. Callers that all ride one batch
   * are all answered at once, and ask again at once: then either they work or the store does, never both. Two batches keep both busy,
   * at the price of one more durable write. Default: no.
   */
  readonly alternates?: (ready: number) => boolean;
  /** Says of an error that it is the affair of one item, and that nothing was done: each item of the batch is then run by itself. */
  readonly isOfOne?: (error: unknown) => boolean;
}

/** What `batcher` makes. */
export interface Batcher<Item, Result> {
  /** Settles when the batch that carried the item is done. */
  add(item: Item): Promise<Result>;
  /** Settles when nothing waits and nothing is under way. Never rejects. */
  idle(): Promise<void>;
  /** How many items wait, not counting those under way. */
  readonly waiting: number;
}

/**
 * J12, group commit: what is added while batches are under way waits, and goes with the next one. Nothing is ever
 * held back for company: an item that finds a free place leaves in the same turn of the event loop.
 *
 * The cost of an item does not depend on how many wait, not even if all of them have the same key. Items that wait
 * keep the process alive, so that none is lost when it ends by itself.
 */
export function batcher<Item, Result>(options: BatcherOptions<Item, Result>): Batcher<Item, Result> {
  return new GroupBatcher(options);
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly key: string | undefined;
  readonly weight: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (reason: unknown) => void;
}

class GroupBatcher<Item, Result> implements Batcher<Item, Result> {
  readonly #options: BatcherOptions<Item, Result>;
  /** May go with the next batch. Holds at most one item a key. */
  readonly #ready = new Fifo<Waiting<Item, Result>>();
  /** Keys of items that are ready or under way → the items that wait behind them. */
  readonly #behind = new Map<string, Fifo<Waiting<Item, Result>>>();
  readonly #idle: (() => void)[] = [];
  #waiting = 0;
  #underWay = 0;
  #scheduled = false;

  constructor(options: BatcherOptions<Item, Result>) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting;
  }

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      const { keyOf, weightOf } = this.#options;
      const waiting = { item, key: keyOf?.(item), weight: weightOf?.(item) ?? 0, resolve, reject };
      this.#waiting++;
      const behind = waiting.key === undefined ? undefined : this.#behind.get(waiting.key);
      if (behind !== undefined) {
        behind.push(waiting);
        return;
      }
      if (waiting.key !== undefined) this.#behind.set(waiting.key, new Fifo());
      this.#ready.push(waiting);
      this.#schedule();
    });
  }

  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve);
      this.#answerIdle();
    });
  }

  /**
   * Batches start at the end of the loop's turn, not at once: the callers that were just answered, and the requests
   * that were read from other sockets in the same turn, come along instead of finding that a batch of one has left.
   */
  #schedule(): void {
    if (this.#scheduled || this.#ready.length === 0 || this.#free <= 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      // Decided once: what is left for the last place may be few.
      const alternates = this.#options.alternates?.(this.#ready.length) === true;
      for (let free = this.#free; this.#ready.length > 0 && free > 0; free--) {
        void this.#run(this.#take(alternates ? Math.ceil(this.#ready.length / free) : this.#ready.length));
      }
    });
  }

  get #free(): number {
    return (this.#options.inFlight ?? 1) - this.#underWay;
  }

  #take(share: number): Waiting<Item, Result>[] {
    const { maxWeight = Number.POSITIVE_INFINITY } = this.#options;
    const maxItems = Math.min(share, this.#options.maxItems);
    const batch: Waiting<Item, Result>[] = [];
    let weight = 0;
    for (let next = this.#ready.peek(); next !== undefined && batch.length < maxItems; next = this.#ready.peek()) {
      weight += next.weight;
      if (batch.length > 0 && weight > maxWeight) break;
      batch.push(next);
      this.#ready.shift();
    }
    this.#waiting -= batch.length;
    return batch;
  }

  async #run(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    this.#underWay++;
    try {
      const results = await this.#options.run(batch.map(({ item }) => item));
      if (results.length !== batch.length) throw new Error(`${results.length} results for a batch of ${batch.length}`);
      for (const [index, waiting] of batch.entries()) answer(waiting, results[index]);
    } catch (reason) {
      if (batch.length > 1 && this.#options.isOfOne?.(reason)) await this.#runEach(batch);
      else for (const { reject } of batch) reject(reason);
    }
    this.#underWay--;
    for (const { key } of batch) if (key !== undefined) this.#letNextOf(key);
    this.#schedule();
    this.#answerIdle();
  }

  /** One after the other: each may be the one that fails. */
  async #runEach(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    for (const waiting of batch) {
      await this.#options.run([waiting.item]).then(([result]) => answer(waiting, result), waiting.reject);
    }
  }

  #letNextOf(key: string): void {
    const next = this.#behind.get(key)?.shift();
    if (next === undefined) this.#behind.delete(key);
    else this.#ready.push(next);
  }

  #answerIdle(): void {
    if (this.#waiting === 0 && this.#underWay === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }
}

function answer<Item, Result>({ resolve, reject }: Waiting<Item, Result>, result: Result | Error | undefined): void {
  if (result instanceof Error) reject(result);
  else resolve(result as Result);
}

/** First in, first out, in constant time; Array.shift moves everything behind it. */
class Fifo<Item> {
  #items: (Item | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  peek(): Item | undefined {
    return this.#items[this.#head];
  }

  shift(): Item | undefined {
    const item = this.#items[this.#head];
    if (this.length === 0) return undefined;
    this.#items[this.#head++] = undefined;
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }
}

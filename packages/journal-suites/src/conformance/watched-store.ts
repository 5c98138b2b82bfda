import { JournalError } from "@osbert/journal";
import type { Store } from "@osbert/journal/store";

export type StoreMethod = Exclude<keyof Store, "name" | "pace" | "onWake">;

export interface StoreCall {
  readonly method: StoreMethod;
  readonly sent: readonly unknown[];
  answer: unknown;
}

/** What the store was asked meanwhile, and how much went to and fro. */
export interface Traffic {
  readonly calls: Readonly<Partial<Record<StoreMethod, number>>>;
  readonly bytes: number;
}

type When = "before" | "after";

interface Trouble {
  readonly methods: ReadonlySet<StoreMethod> | null;
  readonly when: When;
  readonly meets: () => Promise<void>;
}

/** Calls that wait until they are let go. */
export interface Hold {
  readonly waiting: number;
  letGo(): void;
}

/** A store as one process sees it. The story counts its calls, holds them up, and lets them fail. */
export class WatchedStore {
  readonly store: Store;
  readonly calls: StoreCall[] = [];
  /** How often the store has told that something happened. */
  wakes = 0;
  /** Says that the store no longer vouches for an owner of this process. */
  readonly presences = new Map<string, () => void>();
  readonly #troubles = new Set<Trouble>();
  readonly #holds = new Set<Hold>();
  #underWay = 0;
  #held = 0;
  #closed = false;

  constructor(real: Store) {
    this.store = new Proxy(real, {
      get: (target, name: keyof Store) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        const call = (...sent: unknown[]): unknown => value.apply(target, sent);
        if (name === "onWake")
          return (wake: Parameters<Store["onWake"]>[0]) =>
            real.onWake((...what) => {
              this.wakes++;
              wake(...what);
            });
        return (...sent: unknown[]) =>
          this.#call(name as StoreMethod, sent, call as (...sent: unknown[]) => Promise<unknown>);
      },
    });
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Calls that the store has not answered yet; those that are held do not count. */
  get underWay(): number {
    return this.#underWay - this.#held;
  }

  /** Holds calls of these methods (of all, if none is named) up: before they reach the store, or their answers. */
  hold(methods: readonly StoreMethod[] = [], when: When = "before"): Hold {
    let letGo = (): void => undefined;
    const gone = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    let waiting = 0;
    const trouble: Trouble = {
      methods: methods.length === 0 ? null : new Set(methods),
      when,
      meets: async () => {
        waiting++;
        this.#held++;
        await gone;
        this.#held--;
        waiting--;
      },
    };
    this.#troubles.add(trouble);
    const hold: Hold = {
      get waiting() {
        return waiting;
      },
      letGo: () => {
        this.#troubles.delete(trouble);
        this.#holds.delete(hold);
        letGo();
      },
    };
    this.#holds.add(hold);
    return hold;
  }

  /** The next `times` calls of the method fail: before they reach the store, or after (the answer is lost). */
  fail(method: StoreMethod, when: When, times = 1): void {
    let left = times;
    const trouble: Trouble = {
      methods: new Set([method]),
      when,
      meets: async () => {
        if (--left === 0) this.#troubles.delete(trouble);
        throw new JournalError("store-unavailable", `the story lets this ${method} fail ${when} it reached the store`);
      },
    };
    this.#troubles.add(trouble);
  }

  letAllGo(): void {
    this.#troubles.clear();
    for (const hold of this.#holds) hold.letGo();
  }

  count(method: StoreMethod): number {
    return this.calls.filter((call) => call.method === method).length;
  }

  /** What `work` costs, without the methods that only look whether there is something to do. */
  async traffic(work: () => Promise<unknown>, without: readonly StoreMethod[] = ["claim"]): Promise<Traffic> {
    const from = this.calls.length;
    await work();
    const calls: Partial<Record<StoreMethod, number>> = {};
    let bytes = 0;
    for (const { method, sent, answer } of this.calls.slice(from)) {
      if (without.includes(method)) continue;
      calls[method] = (calls[method] ?? 0) + 1;
      bytes += sizeOf(sent) + sizeOf(answer);
    }
    return { calls, bytes };
  }

  async #call(method: StoreMethod, sent: unknown[], call: (...sent: unknown[]) => Promise<unknown>): Promise<unknown> {
    // A process that was killed asks nothing any more.
    if (this.#closed) throw new JournalError("stopped", `${method} was called after the store was closed`);
    if (method === "close") this.#closed = true;
    if (method === "attend") this.presences.set(String(sent[0]), sent[1] as () => void);
    const noted: StoreCall = { method, sent, answer: undefined };
    this.calls.push(noted);
    this.#underWay++;
    try {
      await this.#meet(method, "before");
      noted.answer = await call(...sent);
      await this.#meet(method, "after");
      return noted.answer;
    } finally {
      this.#underWay--;
    }
  }

  async #meet(method: StoreMethod, when: When): Promise<void> {
    for (const trouble of [...this.#troubles]) {
      if (trouble.when === when && (trouble.methods === null || trouble.methods.has(method))) await trouble.meets();
    }
  }
}

function sizeOf(value: unknown): number {
  const text = JSON.stringify(value, (_, part: unknown) => (part instanceof Map ? [...part] : part));
  return text === undefined ? 0 : Buffer.byteLength(text);
}

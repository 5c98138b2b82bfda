import { JournalError } from "../../src/errors.js";
import type { Store } from "../../src/store.js";
import { interposedStore, type StoreCall, type StoreMethod } from "../../src/testing/index.js";

/** What becomes of a call that is on its way. */
export type Fate = "goes through" | "reaches the store" | "loses its answer" | "never arrives";

export interface OnItsWay {
  readonly what: string;
  readonly direction: "to the store" | "back";
  meet(fate: Fate): void;
}

export interface WireOptions {
  readonly store: Store;
  readonly pace: Store["pace"];
  /** A call has met a fault just now. */
  readonly troubled: () => void;
  /** Carries out a call and looks at what it did. */
  readonly apply: (call: StoreCall, go: () => Promise<unknown>) => Promise<unknown>;
}

/** Calls whose faults say nothing that those of the others do not; without them every start would need a second try. */
const dependable: ReadonlySet<StoreMethod> = new Set(["open", "close", "now", "attend", "leave", "reap"]);

/** What connects one process to the store. It can be slow, lose answers, and be cut. */
export class Wire {
  readonly store: Store;
  readonly onItsWay: OnItsWay[] = [];
  slow = false;
  readonly #faults: { readonly method: StoreMethod; readonly fault: "loses its answer" | "never arrives" }[] = [];
  /** Of a process that is frozen: answers, wake-ups and timers that it will find when it goes on. */
  #frozen: (() => void)[] | undefined;
  #cut = false;
  readonly #troubled: () => void;

  constructor({ store, pace, troubled, apply }: WireOptions) {
    this.#troubled = troubled;
    const wired = interposedStore(store, (call, go) => this.#carry(call, () => apply(call, go)));
    this.store = {
      ...wired,
      pace,
      onWake: (listener) => store.onWake((what, key) => this.whenAwake(() => listener(what, key))),
    };
  }

  get disturbed(): boolean {
    return this.slow || this.#frozen !== undefined || this.onItsWay.length > 0 || this.#faults.length > 0;
  }

  get frozen(): boolean {
    return this.#frozen !== undefined;
  }

  /** The next call of the method meets this. */
  next(method: StoreMethod, fault: "loses its answer" | "never arrives"): void {
    this.#faults.push({ method, fault });
  }

  calmDown(): void {
    this.slow = false;
    this.#faults.length = 0;
    for (const call of this.onItsWay.splice(0)) call.meet("goes through");
  }

  freeze(): void {
    this.#frozen ??= [];
  }

  thaw(): void {
    const late = this.#frozen ?? [];
    this.#frozen = undefined;
    for (const happen of late) happen();
  }

  /** The process is dead: nothing of it reaches the store, and nothing reaches it. */
  cut(): void {
    this.#cut = true;
    this.onItsWay.length = 0;
    this.#frozen = undefined;
  }

  whenAwake(happen: () => void): void {
    if (this.#cut) return;
    if (this.#frozen === undefined) happen();
    else this.#frozen.push(happen);
  }

  async #carry(call: StoreCall, go: () => Promise<unknown>): Promise<unknown> {
    if (this.#cut) return never;
    if (dependable.has(call.method)) return this.#deliver(await go());
    const fault = this.#takeFault(call.method);
    if (fault !== undefined) this.#troubled();
    if (fault === "never arrives") throw unavailable();
    const there = this.slow ? await this.#hold(call, "to the store") : "goes through";
    if (this.#cut) return never;
    if (there === "never arrives") throw unavailable();
    const answer = await go();
    const back = there === "reaches the store" ? await this.#hold(call, "back") : there;
    if (fault === "loses its answer" || back === "loses its answer")
      return this.#deliver(Promise.reject(unavailable()));
    return this.#deliver(answer);
  }

  #takeFault(method: StoreMethod): "loses its answer" | "never arrives" | undefined {
    const index = this.#faults.findIndex((fault) => fault.method === method);
    return index === -1 ? undefined : this.#faults.splice(index, 1)[0]?.fault;
  }

  #hold(call: StoreCall, direction: OnItsWay["direction"]): Promise<Fate> {
    return new Promise((resolve) => {
      const held: OnItsWay = {
        what: describe(call),
        direction,
        meet: (fate) => {
          const index = this.onItsWay.indexOf(held);
          if (index >= 0) this.onItsWay.splice(index, 1);
          resolve(fate);
        },
      };
      this.onItsWay.push(held);
    });
  }

  #deliver<T>(answer: T | Promise<T>): Promise<T> {
    if (this.#cut) return never;
    if (this.#frozen === undefined) return Promise.resolve(answer);
    const late = Promise.resolve(answer);
    late.catch(() => undefined);
    return new Promise((resolve) => void this.#frozen?.push(() => resolve(late)));
  }
}

const never = new Promise<never>(() => undefined);

function unavailable(): JournalError {
  return new JournalError("store-unavailable");
}

function describe({ method, args }: StoreCall): string {
  const [first] = args as [{ key?: string; entries?: { kind: string }[] } | string];
  if (method !== "commit" || typeof first === "string") return method;
  const kinds = (first.entries ?? []).map(({ kind }) => kind);
  return `commit of "${kinds.length > 5 ? `${kinds[0]}, … (${kinds.length})` : kinds.join(", ")}" on ${first.key}`;
}

import { JournalError } from "../errors.js";
import type { Store } from "../store.js";
import { interposedStore, type StoreCall, type StoreMethod } from "./interposed-store.js";

/**
 * What can happen to a call:
 * - "refused": it does not reach the store, and fails at once.
 * - "answer lost": the store does what it was asked, and the caller hears that it failed.
 * - "hangs": nothing is heard of it until `comeBack`; then it is made.
 * - "answer hangs": the store does what it was asked, and the caller hears of it at `comeBack`.
 */
export type Fault = "refused" | "answer lost" | "hangs" | "answer hangs";

/** A store that fails on command, to see what becomes of a program when its store does. `open` and `close` never fail. */
export interface FaultyStore extends Store {
  /** From now on this happens to every call, or to those of these methods, until `comeBack`. */
  breakDown(fault: Fault, methods?: readonly StoreMethod[]): void;
  /** This happens to the next call of the method, and to that one alone. Several add up, in their order. */
  next(method: StoreMethod, fault: Fault): void;
  /** All is well again; what hung goes on. */
  comeBack(): void;
  /** Calls so far, those that met a fault included. */
  readonly calls: readonly (StoreCall & { readonly fault: Fault | null })[];
}

/** Wraps a store so that its calls fail, hang or lose their answers when a test says so. Without a word it changes nothing. */
export function faultyStore(store: Store): FaultyStore {
  const calls: (StoreCall & { readonly fault: Fault | null })[] = [];
  const once = new Map<StoreMethod, Fault[]>();
  let broken: { readonly fault: Fault; readonly methods: readonly StoreMethod[] | undefined } | undefined;
  let hanging: (() => void)[] = [];

  const faultOf = (method: StoreMethod): Fault | null => {
    if (method === "open" || method === "close") return null;
    const fault = once.get(method)?.shift();
    if (fault !== undefined) return fault;
    return broken !== undefined && (broken.methods?.includes(method) ?? true) ? broken.fault : null;
  };
  const back = () => new Promise<void>((resolve) => void hanging.push(resolve));

  const inner = interposedStore(store, async (call, go) => {
    const fault = faultOf(call.method);
    calls.push({ ...call, fault });
    switch (fault) {
      case null:
        return go();
      case "refused":
        throw new JournalError("store-unavailable", `the store refused a connection (${call.method})`);
      case "answer lost":
        await go();
        throw new JournalError("store-unavailable", `the connection broke before the store answered (${call.method})`);
      case "hangs":
        await back();
        return go();
      case "answer hangs": {
        const answer = await go();
        await back();
        return answer;
      }
    }
  });

  return Object.assign(inner, {
    calls,
    breakDown(fault: Fault, methods?: readonly StoreMethod[]) {
      broken = { fault, methods };
    },
    next(method: StoreMethod, fault: Fault) {
      once.set(method, [...(once.get(method) ?? []), fault]);
    },
    comeBack() {
      broken = undefined;
      once.clear();
      const goOn = hanging;
      hanging = [];
      for (const resume of goOn) resume();
    },
  });
}

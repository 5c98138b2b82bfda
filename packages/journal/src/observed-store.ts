import type { Store } from "./store.js";

/** A call of a store that has come to its end. */
export interface StoreAnswered {
  readonly kind: "store answered";
  readonly call: StoreCallName;
  readonly tookMs: number;
  readonly failed: boolean;
}

/** The calls that answer with a promise. */
export type StoreCallName = {
  [Name in keyof Store]: Store[Name] extends (...args: never[]) => Promise<unknown> ? Name : never;
}[keyof Store];

/** The same store; `tell` hears of each of its answers, and of nothing that was asked or answered. It cannot harm the call. */
export function observedStore(store: Store, tell: (event: StoreAnswered) => void): Store {
  const watched = new Map<string | symbol, unknown>();
  return new Proxy(store, {
    get(target, name) {
      // On the target: a store's private fields are not the proxy's.
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      let call = watched.get(name);
      if (call === undefined) {
        const asked = (...args: unknown[]): unknown => value.apply(target, args);
        call = name === "onWake" ? asked : timed(name as StoreCallName, asked, tell);
        watched.set(name, call);
      }
      return call;
    },
  });
}

function timed(call: StoreCallName, ask: (...args: unknown[]) => unknown, tell: (event: StoreAnswered) => void) {
  const say = (startedAt: number, failed: boolean) => {
    try {
      tell({ kind: "store answered", call, tookMs: performance.now() - startedAt, failed });
    } catch {
      // Whoever watches cannot harm what is watched.
    }
  };
  return (...args: unknown[]): unknown => {
    const startedAt = performance.now();
    const answer = ask(...args);
    if (!(answer instanceof Promise)) return answer;
    // Beside the caller, who has the very promise of the store: watching makes nobody wait a turn longer.
    answer.then(
      () => say(startedAt, false),
      () => say(startedAt, true),
    );
    return answer;
  };
}

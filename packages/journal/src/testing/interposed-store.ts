import type { Store } from "../store.js";

/** A call of a store's method that answers with a promise. */
export interface StoreCall {
  readonly method: StoreMethod;
  readonly args: readonly unknown[];
}

export type StoreMethod = {
  [Name in keyof Store]: Store[Name] extends (...args: never[]) => Promise<unknown> ? Name : never;
}[keyof Store];

/** Stands between the journal and its store: decides whether and when the call is made (`go`) and what its caller hears of it. */
export type Interpose = (call: StoreCall, go: () => Promise<unknown>) => Promise<unknown>;

/** A store whose every call goes through `interpose`. Name, pace and wake-ups are those of the store beneath. */
export function interposedStore(store: Store, interpose: Interpose): Store {
  const through = <Name extends StoreMethod>(method: Name): Store[Name] => {
    const call = (...args: unknown[]) =>
      interpose({ method, args }, () => (store[method] as (...args: unknown[]) => Promise<unknown>)(...args));
    return call as unknown as Store[Name];
  };
  return {
    name: store.name,
    pace: store.pace,
    open: through("open"),
    close: through("close"),
    now: through("now"),
    read: through("read"),
    versions: through("versions"),
    commit: through("commit"),
    claim: through("claim"),
    renew: through("renew"),
    heldBy: through("heldBy"),
    release: through("release"),
    attend: through("attend"),
    leave: through("leave"),
    reap: through("reap"),
    gone: through("gone"),
    entries: through("entries"),
    parts: through("parts"),
    find: through("find"),
    backlog: through("backlog"),
    remove: through("remove"),
    setAside: through("setAside"),
    restore: through("restore"),
    replaceTexts: through("replaceTexts"),
    onWake: (listener) => store.onWake(listener),
  };
}

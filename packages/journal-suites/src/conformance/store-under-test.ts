import type { Store } from "@osbert/journal/store";

/** A kind of store, as its author hands it to the suites. */
export interface StoreUnderTest {
  readonly name: string;

  /** A place for the data of one test, fresh and empty, whose stores take their time from `clock`. The suite moves that clock. */
  open(clock: () => number): Promise<OpenedStore>;

  /** Why no second process can use the data while a first one does; tests of that are skipped. Left out where one can. */
  readonly oneOwner?: string;

  /** Tests that this store cannot pass: name → reason. A name that is not in the suite is an error. */
  readonly except?: Readonly<Record<string, string>>;
}

/** The data of one test and the ways to it. The suite calls `open()` and `close()` of every store that it gets from here. */
export interface OpenedStore {
  readonly store: Store;

  /**
   * A further store on the same data, as another process would have it. With `oneOwner` it is asked for only after all others were
   * closed, as after a restart.
   */
  another(): Promise<Store>;

  /** Removes the data and all that was needed to keep it. Called last, with every store closed. */
  dispose(): Promise<void>;
}

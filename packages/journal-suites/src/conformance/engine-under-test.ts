import type { OpenedStore, StoreUnderTest } from "./store-under-test.js";

/** A kind of store, as its author hands it to the engine suite. `except` names tests of that suite. */
export interface EngineUnderTest extends StoreUnderTest {
  open(clock: () => number): Promise<OpenedStore & DurableCommits>;
}

interface DurableCommits {
  /** How many durable commits the stores of this place have made so far. Without it the tests of J12 have to be excepted. */
  durableCommits?(): Promise<number>;
}

export { nextDelayMs } from "../decisions/backoff.js";
export { Listened, listened } from "../listened.js";
export { acceptedSeq, journalActor } from "../operation.js";
export { emptyState, type ResourceState, stateOf } from "../state.js";
export { type Fault, type FaultyStore, faultyStore } from "./faulty-store.js";
export { type Interpose, interposedStore, type StoreCall, type StoreMethod } from "./interposed-store.js";
export { type ManualClock, manualClock } from "./manual-clock.js";

export { Listened, listened } from "../listened.js";
export { type Fault, type FaultyStore, faultyStore } from "./faulty-store.js";
export { type Interpose, interposedStore, type StoreCall, type StoreMethod } from "./interposed-store.js";
export { type ManualClock, manualClock } from "./manual-clock.js";

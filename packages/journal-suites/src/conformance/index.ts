export { changeOf, newRecord } from "./changes.js";
export { engineSuite } from "./engine-suite.js";
export type { EngineUnderTest } from "./engine-under-test.js";
export { storeSuite } from "./store-suite.js";
export type { OpenedStore, StoreUnderTest } from "./store-under-test.js";
export type { TestRunner } from "./test-runner.js";

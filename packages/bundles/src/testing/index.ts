export { runnerSuite } from "./runner-suite.js";
export type { RunnerPlace, RunnerUnderTest, TestRunner } from "./runner-under-test.js";

/** Where a suite puts its tests: node:test, vitest and the like fit with two lines of glue. */
export interface TestRunner {
  test(name: string, body: () => Promise<void>): void;
  /** A test that is not run, and why. */
  skip(name: string, reason: string): void;
}

import type { Runner } from "../runners/runner.js";
import type { Artifact } from "../sources/source.js";

/** Where a suite puts its tests: node:test, vitest and the like fit with two lines of glue. */
export interface TestRunner {
  test(name: string, body: () => Promise<void>): void;
  /** A test that is not run, and why. */
  skip(name: string, reason: string): void;
}

/** A runner that is put to the test. */
export interface RunnerUnderTest {
  readonly name: string;
  /** Called once, before the first test. */
  open(): Promise<RunnerPlace>;
  /** What the runner cannot keep: the name of the test, and the reason. */
  readonly except?: Readonly<Record<string, string>>;
}

export interface RunnerPlace {
  /** The runner as another process would open it: nothing that it needs is in memory alone. */
  runner(): Promise<Runner>;
  /**
   * Makes a bundle of one file `run`, a program for bash that its spec runs as `bash ./run`. There have to be bash and coreutils where it
   * runs, and with `network: true` it has to reach the loopback of the test.
   */
  bundle(program: string): Promise<Artifact>;
  /** Called once, after the last test. */
  dispose(): Promise<void>;
}

import { writeFileSync } from "node:fs";
import type { Reporter, SerializedError, TestCase, TestModule } from "vitest/node";
import type { TestOutcome } from "./test-report.js";

/**
 * Writes what became of each test to the file that OSBERT_TEST_REPORT names, for tools/test-report.ts. Vitest's own report in JSON leaves out what
 * makes a run fail although every test passed: errors that nobody caught, hooks that failed, and processes that died with their tests.
 */
export default class CiReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], uncaught: readonly SerializedError[]): void {
    const path = process.env.OSBERT_TEST_REPORT;
    if (path === undefined) throw new Error("OSBERT_TEST_REPORT must name the file for the report");
    writeFileSync(path, JSON.stringify([...modules.flatMap(ofModule), ...uncaught.map(ofUncaught)]));
  }
}

function ofModule(module: TestModule): TestOutcome[] {
  const file = pathInCheckout(module.moduleId);
  const tests = [...module.children.allTests()].map((test): TestOutcome => {
    const { state, errors } = test.result();
    // A test that never ended is one whose process died.
    const status = state === "pending" ? "failed" : state;
    return { file, test: nameOf(test), status, said: text(errors ?? []), ms: test.diagnostic()?.duration ?? 0 };
  });
  const errors = [module, ...module.children.allSuites()].flatMap((suite) => suite.errors());
  const isWhole =
    module.state() === "passed" || module.state() === "skipped" || tests.some(({ status }) => status === "failed");
  if (errors.length === 0 && isWhole) return tests;
  const said = text(errors) || `the file ended as ${module.state()}`;
  return [...tests, { file, test: "", status: "failed", said, ms: 0 }];
}

/** As `vitest -t` compares it. */
function nameOf(test: TestCase): string {
  const names = [test.name];
  for (let around = test.parent; around.type === "suite"; around = around.parent) names.unshift(around.name);
  return names.join(" ");
}

function ofUncaught(error: SerializedError): TestOutcome {
  const path: unknown = error.VITEST_TEST_PATH;
  const during: unknown = error.VITEST_TEST_NAME;
  const said = `an error that nobody caught${typeof during === "string" ? `, during "${during}"` : ""}: ${text([error])}`;
  return { file: typeof path === "string" ? pathInCheckout(path) : "", test: "", status: "failed", said, ms: 0 };
}

/** Under another Node.js the tests run in a copy of the checkout: the path is told from the folder of tests on. */
function pathInCheckout(path: string): string {
  return path.replace(/^.*\/(?=(?:packages|tools|examples)\/)/, "");
}

function text(errors: readonly { message: string; stack?: string | undefined }[]): string {
  return errors
    .map(({ message, stack }) => stack ?? message)
    .join("\n")
    .slice(0, 2000);
}

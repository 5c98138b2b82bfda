import { existsSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * `tsx tools/test-report.ts REPORT.json …` tells what took longest and what failed in reports of tools/ci-reporter.ts, and ends with the line
 * "N passed, N failed"; beside NAME.json, NAME-again.json may hold a second run of the files in which something failed. With `--failed`, it prints
 * what failed instead: a pattern of the tests' names, as `vitest -t` takes it, and a line for each file.
 */
export interface TestOutcome {
  /** Empty where nobody knows in which file it was. */
  readonly file: string;
  /** Empty for what failed outside of tests: loading, hooks, errors that nobody caught. */
  readonly test: string;
  readonly status: "passed" | "failed" | "skipped";
  readonly said: string;
  /** How long it took. */
  readonly ms: number;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) main();

function main(): void {
  const isOfFailed = process.argv[2] === "--failed";
  const paths = process.argv.slice(isOfFailed ? 3 : 2);
  if (isOfFailed) for (const line of toRunAgain(paths.flatMap((path) => read(path) ?? []))) console.log(line);
  else process.exitCode = tell(paths) ? 0 : 1;
}

/** What failed without a file comes with the file whose process died; where there is none, nothing can be run again. */
export function toRunAgain(outcomes: readonly TestOutcome[]): string[] {
  const failed = outcomes.filter(({ file, status }) => status === "failed" && file !== "");
  if (failed.length === 0) return [];
  const names = failed.map(({ test }) => (test === "" ? ".*" : test.replace(/[^\w ]/g, ".")));
  return [`^(${names.join("|")})$`, ...new Set(failed.map(({ file }) => file))];
}

function tell(paths: readonly string[]): boolean {
  const sum = { passed: 0, failed: 0, skipped: 0 };
  for (const path of paths) {
    const first = read(path) ?? [];
    console.log(`${basename(path, ".json")}, longest: ${slowest(first).join(", ")}`);
    if (!first.some(({ status }) => status === "passed")) {
      console.log(`failed: nothing was run for ${path}`);
      sum.failed++;
    }
    const again = read(path.replace(/\.json$/, "-again.json"));
    for (const outcome of first) {
      const { file, test, status, said } = outcome;
      if (status !== "failed") {
        sum[status]++;
        continue;
      }
      const isUnsteady = again !== undefined && passedIn(again, outcome);
      console.log(`${isUnsteady ? "unsteady, passed alone" : "failed"}: ${file} > ${test}\n${said}\n`);
      sum[isUnsteady ? "passed" : "failed"]++;
    }
  }
  console.log(`${sum.passed} passed, ${sum.failed} failed${sum.skipped > 0 ? `, ${sum.skipped} skipped` : ""}`);
  return sum.failed === 0;
}

/** Files and their seconds, without those of hooks. */
export function slowest(outcomes: readonly TestOutcome[], most = 25): string[] {
  const taken = new Map<string, number>();
  for (const { file, ms } of outcomes) taken.set(file, (taken.get(file) ?? 0) + ms);
  const sorted = [...taken].sort(([, one], [, other]) => other - one).slice(0, most);
  return sorted.map(([file, ms]) => `${basename(file, ".test.ts")} ${Math.round(ms / 1_000)} s`);
}

/** Whether what failed was run again and did not fail; of what failed outside of tests, whether all of its file passed; without a file, all. */
export function passedIn(again: readonly TestOutcome[], failed: TestOutcome): boolean {
  if (again.some(({ file, status }) => file === "" && status === "failed")) return false;
  const second = again.filter(
    ({ file, test }) => failed.file === "" || (file === failed.file && (failed.test === "" || test === failed.test)),
  );
  return second.some(({ status }) => status === "passed") && second.every(({ status }) => status !== "failed");
}

function read(path: string): TestOutcome[] | undefined {
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as TestOutcome[]) : undefined;
}

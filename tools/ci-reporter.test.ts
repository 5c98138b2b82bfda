import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { passedIn, slowest, type TestOutcome, toRunAgain } from "./test-report.js";

const files = {
  "good.test.ts": `test("passes", () => {}); test.skip("left out", () => {});`,
  "bad.test.ts": `describe("a > b", () => { test("fails (1)", () => { throw new Error("too bad"); }); });`,
  "hook.test.ts": `afterAll(() => { throw new Error("the hook broke"); }); test("passes", () => {});`,
  "uncaught.test.ts": `test("passes", async () => { void Promise.reject(new Error("nobody looked")); await new Promise((go) => setTimeout(go, 50)); });`,
  "dies.test.ts": `test("kills its process", async () => { process.kill(process.pid, "SIGKILL"); await new Promise(() => {}); });`,
};
const at = mkdtempSync(join(tmpdir(), "osbert-ci-reporter-"));
let exitCode: number | null = null;
let outcomes: TestOutcome[] = [];

beforeAll(() => {
  mkdirSync(join(at, "tools"));
  symlinkSync(fileURLToPath(new URL("../node_modules", import.meta.url)), join(at, "node_modules"));
  for (const [name, text] of Object.entries(files))
    writeFileSync(join(at, "tools", name), `import { afterAll, describe, test } from "vitest";\n${text}\n`);
  const reporter = fileURLToPath(new URL("./ci-reporter.ts", import.meta.url));
  const { status } = spawnSync("npx", ["vitest", "run", "--root", at, "--pool=forks", `--reporter=${reporter}`], {
    env: { ...process.env, OSBERT_TEST_REPORT: join(at, "report.json") },
  });
  exitCode = status;
  outcomes = JSON.parse(readFileSync(join(at, "report.json"), "utf8")) as TestOutcome[];
});
afterAll(() => rmSync(at, { recursive: true, force: true }));

const of = (file: string) => outcomes.filter((outcome) => outcome.file === `tools/${file}`);

test("a run that fails has its reasons in the report", () => {
  expect(exitCode).toBe(1);
  expect(of("good.test.ts").map(({ test, status }) => [test, status])).toEqual([
    ["passes", "passed"],
    ["left out", "skipped"],
  ]);
  expect(of("bad.test.ts")).toMatchObject([
    { test: "a > b fails (1)", status: "failed", said: expect.stringContaining("too bad") as string },
  ]);
});

test("hooks that fail and errors that nobody caught fail, although every test passed", () => {
  expect(of("hook.test.ts")).toMatchObject([
    { test: "passes", status: "passed" },
    { test: "", status: "failed", said: expect.stringContaining("the hook broke") as string },
  ]);
  expect(of("uncaught.test.ts")).toMatchObject([
    { test: "passes", status: "passed" },
    { test: "", status: "failed", said: expect.stringContaining("nobody looked") as string },
  ]);
});

test("a process that dies fails with its file, beside what is told of it", () => {
  expect(of("dies.test.ts")).toMatchObject([{ status: "failed" }]);
  expect(outcomes.filter(({ file }) => file === "")).toMatchObject([
    { status: "failed", said: expect.stringContaining("forks") as string },
  ]);
});

test("what failed is run again by names and files", () => {
  const bad: TestOutcome = { file: "tools/a.test.ts", test: "a > b fails (1)", status: "failed", said: "", ms: 900 };
  expect(toRunAgain([bad])).toEqual(["^(a . b fails .1.)$", "tools/a.test.ts"]);
  expect(toRunAgain([{ ...bad, test: "" }])).toEqual(["^(.*)$", "tools/a.test.ts"]);
  expect(toRunAgain([bad, { ...bad, file: "", test: "" }])).toEqual(["^(a . b fails .1.)$", "tools/a.test.ts"]);
  expect(toRunAgain([{ ...bad, file: "", test: "" }])).toEqual([]);
  expect(toRunAgain([{ ...bad, status: "passed" }])).toEqual([]);
});

test("only what ran again and passed counts as unsteady", () => {
  const bad: TestOutcome = { file: "tools/a.test.ts", test: "one", status: "failed", said: "", ms: 0 };
  const passed: TestOutcome = { ...bad, status: "passed" };
  expect(passedIn([passed], bad)).toBe(true);
  expect(passedIn([], bad)).toBe(false);
  expect(passedIn([{ ...bad, status: "skipped" }], bad)).toBe(false);
  expect(passedIn([passed, { ...bad, test: "two" }], bad)).toBe(true);
  expect(passedIn([passed, { ...bad, test: "two" }], { ...bad, test: "" })).toBe(false);
  expect(passedIn([passed, { ...bad, file: "" }], bad)).toBe(false);
  expect(passedIn([passed], { ...bad, file: "", test: "" })).toBe(true);
  expect(passedIn([passed, bad], { ...bad, file: "", test: "" })).toBe(false);
});

test("what took longest is told by file", () => {
  const of = (file: string, ms: number): TestOutcome => ({ file, test: "one", status: "passed", said: "", ms });
  const outcomes = [of("tools/a.test.ts", 900), of("tools/b.test.ts", 1_600), of("tools/a.test.ts", 1_200)];
  expect(slowest(outcomes)).toEqual(["a 2 s", "b 2 s"]);
  expect(slowest(outcomes, 1)).toEqual(["a 2 s"]);
});

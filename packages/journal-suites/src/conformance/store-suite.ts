import { backlogTests } from "./store/backlog.js";
import { claimTests } from "./store/claim.js";
import { commitTests } from "./store/commit.js";
import { entriesTests } from "./store/entries.js";
import { findTests } from "./store/find.js";
import { groupCommitTests } from "./store/group-commit.js";
import { numbersTests } from "./store/numbers.js";
import { partsTests } from "./store/parts.js";
import { processesTests } from "./store/processes.js";
import { readTests } from "./store/read.js";
import { releaseTests } from "./store/release.js";
import { removeTests } from "./store/remove.js";
import { renewTests } from "./store/renew.js";
import { replaceTextsOfOthersTests, replaceTextsTests } from "./store/replace-texts.js";
import { restartTests } from "./store/restart.js";
import { setAsideTests } from "./store/set-aside.js";
import { takeOverTests } from "./store/take-over.js";
import { textsTests } from "./store/texts.js";
import { wakeTests } from "./store/wake.js";
import { workTests } from "./store/work.js";
import { StoreFixture, type StoreTests } from "./store-fixture.js";
import type { StoreUnderTest } from "./store-under-test.js";
import type { TestRunner } from "./test-runner.js";

/** What every store has to do, one table a subject. */
const ofEveryStore: readonly StoreTests[] = [
  commitTests,
  groupCommitTests,
  readTests,
  entriesTests,
  partsTests,
  findTests,
  backlogTests,
  workTests,
  removeTests,
  claimTests,
  renewTests,
  releaseTests,
  takeOverTests,
  setAsideTests,
  wakeTests,
  restartTests,
  textsTests,
  numbersTests,
  replaceTextsTests,
];

/** What a store has to do that several processes share. */
const ofSharedStores: readonly StoreTests[] = [processesTests, replaceTextsOfOthersTests];

/**
 * The specification of a store as tests: one that passes them all keeps its part of the promises J1 to J12. Registers every test with
 * `runner`, those that `subject` excepts as skipped. Throws if `subject` excepts a test that there is not.
 */
export function storeSuite(runner: TestRunner, subject: StoreUnderTest): void {
  const { except = {}, oneOwner } = subject;
  const own = inOne(ofEveryStore);
  const shared = inOne(ofSharedStores);
  const unknown = Object.keys(except).filter((name) => !own.has(name) && !shared.has(name));
  if (unknown.length > 0)
    throw new Error(`${subject.name} excepts what is no test of the store suite: ${unknown.join("; ")}`);

  for (const [name, body] of [...own, ...shared]) {
    const reason = except[name] ?? (shared.has(name) ? oneOwner : undefined);
    if (reason === undefined) runner.test(name, () => StoreFixture.use(subject, body));
    else runner.skip(name, reason);
  }
}

function inOne(tables: readonly StoreTests[]): ReadonlyMap<string, StoreTests[string]> {
  const tests = tables.flatMap((table) => Object.entries(table));
  const byName = new Map(tests);
  if (byName.size < tests.length) throw new Error("two tests of the store suite have one name");
  return byName;
}

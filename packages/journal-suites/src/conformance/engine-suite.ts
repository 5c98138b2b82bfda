import { acceptedTests } from "./engine/accepted.js";
import { attributionTests } from "./engine/attribution.js";
import { cancelTests } from "./engine/cancel.js";
import { effectsTests } from "./engine/effects.js";
import { failuresTests } from "./engine/failures.js";
import { flatCostTests } from "./engine/flat-cost.js";
import { followedTests } from "./engine/followed.js";
import { groupCommitTests } from "./engine/group-commit.js";
import { lanesTests } from "./engine/lanes.js";
import { oneRunnerTests, takeOverByAnotherTests } from "./engine/one-runner.js";
import { operatingTests } from "./engine/operating.js";
import { orderTests } from "./engine/order.js";
import { partsUnderTests } from "./engine/parts-under.js";
import { pollingTests } from "./engine/polling.js";
import { queriesTests } from "./engine/queries.js";
import { queueTests } from "./engine/queue.js";
import { refusalsTests } from "./engine/refusals.js";
import { retentionTests } from "./engine/retention.js";
import { setAsideTests } from "./engine/set-aside.js";
import { settleTests } from "./engine/settle.js";
import { lanesOfTheKilledTests, sharedLanesTests } from "./engine/shared-lanes.js";
import { stepsTests } from "./engine/steps.js";
import { stoppingTests } from "./engine/stopping.js";
import { tellingTests } from "./engine/telling.js";
import { waitingTests } from "./engine/waiting.js";
import type { EngineUnderTest } from "./engine-under-test.js";
import { type EngineTests, Story } from "./story.js";
import type { TestRunner } from "./test-runner.js";

/** What the engine promises on every store, one table a subject. */
const onEveryStore: readonly EngineTests[] = [
  acceptedTests,
  oneRunnerTests,
  stepsTests,
  waitingTests,
  pollingTests,
  orderTests,
  cancelTests,
  attributionTests,
  flatCostTests,
  groupCommitTests,
  failuresTests,
  settleTests,
  retentionTests,
  queriesTests,
  queueTests,
  lanesTests,
  sharedLanesTests,
  followedTests,
  partsUnderTests,
  effectsTests,
  operatingTests,
  stoppingTests,
  setAsideTests,
  refusalsTests,
  tellingTests,
];

/** What it promises on a store that several processes share. */
const onSharedStores: readonly EngineTests[] = [takeOverByAnotherTests, lanesOfTheKilledTests];

/**
 * The promises J1 to J12 as tests of the real engine on a real store. Registers every test with `runner`, those that `subject` excepts
 * as skipped. Throws if `subject` excepts a test that there is not.
 */
export function engineSuite(runner: TestRunner, subject: EngineUnderTest): void {
  const { except = {}, oneOwner } = subject;
  const own = inOne(onEveryStore);
  const shared = inOne(onSharedStores);
  const unknown = Object.keys(except).filter((name) => !own.has(name) && !shared.has(name));
  if (unknown.length > 0)
    throw new Error(`${subject.name} excepts what is no test of the engine suite: ${unknown.join("; ")}`);

  for (const [name, body] of [...own, ...shared]) {
    const reason = except[name] ?? (shared.has(name) ? oneOwner : undefined);
    if (reason === undefined) runner.test(name, () => Story.tell(subject, body));
    else runner.skip(name, reason);
  }
}

function inOne(tables: readonly EngineTests[]): ReadonlyMap<string, EngineTests[string]> {
  const tests = tables.flatMap((table) => Object.entries(table));
  const byName = new Map(tests);
  if (byName.size < tests.length) throw new Error("two tests of the engine suite have one name");
  return byName;
}

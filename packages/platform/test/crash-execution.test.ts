import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CrashPoint } from "@osbert/journal";
import { expect, onTestFinished, test } from "vitest";
import { type MisbehavingBroker, startMisbehaving } from "../src/testing/index.js";
import { checkReport, startCrashing } from "./crash-lab.js";
import type { CrashConfig, CrashReport } from "./crash-story.js";

/** Moments between two effects of an operation. Those of accepting, pruning and leases are the journal's own affair. */
const points: readonly CrashPoint[] = [
  "after accept is committed",
  "before step",
  "after step, before it is recorded",
  "after step is recorded",
  "after wait is recorded",
  "before operation is settled",
  "after operation is settled",
];
const seed = Number(process.env.OSBERT_CRASH_SEED ?? 7);

test("a platform that is killed again and again makes nothing twice, and nothing is at the broker that it does not know", {
  timeout: 300_000,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), "osbert-crash-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const broker = await startMisbehaving({
    credentials: { username: "platform", password: "secret" },
    chaos: { seed, rate: 0.2 },
  });
  onTestFinished(() => broker.stop());
  const config = { store: { file: join(folder, "platform.db") }, url: broker.url };
  let kills = 0;
  // More is asked for each time, so that there is always something to be killed in.
  let instances = 4;
  for (const [at, point] of points.entries()) {
    instances += 2;
    const end = await run({ ...config, instances, dieAt: { point, count: 1 + ((seed + at * 5) % 11) } });
    if (end === "killed") kills++;
  }
  // And from outside, in the middle of whatever it does: when the broker has heard so many more requests.
  for (const more of [3, 12]) {
    instances += 2;
    if ((await run({ ...config, instances }, untilHeard(broker, more))) === "killed") kills++;
  }
  expect(kills).toBeGreaterThanOrEqual(5);
  const report = await run({ ...config, instances });
  if (report === "killed") throw new Error("nobody should have killed it");
  broker.finishLate();
  checkReport(broker, report);
});

/** Resolves when the broker has heard so many more requests. */
function untilHeard(broker: MisbehavingBroker, more: number): () => boolean {
  const before = broker.requests().length;
  return () => broker.requests().length >= before + more;
}

/** Runs it to its end, whichever that is. */
async function run(config: CrashConfig, isTime?: () => boolean): Promise<"killed" | CrashReport> {
  const started = startCrashing(config);
  const looking = setInterval(() => isTime?.() === true && started.child.kill("SIGKILL"), 5);
  try {
    return await started.end;
  } finally {
    clearInterval(looking);
  }
}

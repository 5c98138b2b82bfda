import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { CrashPoint } from "@osbert/journal";
import { expect, onTestFinished, test } from "vitest";
import { type MisbehavingBroker, startMisbehaving } from "../src/testing/index.js";
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
  const config = { file: join(folder, "platform.db"), url: broker.url };
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
  check(broker, report);
});

function check(broker: MisbehavingBroker, { known, ready, ledger }: CrashReport): void {
  const there = broker
    .state()
    .instances.flatMap(({ id, bindings }) => [id, ...bindings.map((binding) => `${id}/${binding.id}`)]);
  const accounted = new Set([...known, ...ledger]);
  expect(there.filter((id) => !accounted.has(id))).toEqual([]);
  expect(ready.filter((id) => !there.includes(id))).toEqual([]);
  // No identity of one author on another's call: what is asked for one instance is asked by one of them.
  const authors = new Map<string, Set<string>>();
  for (const { path, headers } of broker.requests()) {
    const [, instance] = /^\/v2\/service_instances\/([^/]+)/.exec(path) ?? [];
    const identity = headers["x-broker-api-originating-identity"];
    if (instance === undefined || identity === undefined) continue;
    authors.set(instance, (authors.get(instance) ?? new Set()).add(String(identity)));
  }
  for (const [instance, identities] of authors) expect(identities.size, instance).toBe(1);
}

/** Resolves when the broker has heard so many more requests. */
function untilHeard(broker: MisbehavingBroker, more: number): () => boolean {
  const before = broker.requests().length;
  return () => broker.requests().length >= before + more;
}

/** Runs it to its end, whichever that is. */
async function run(config: CrashConfig, isTime?: () => boolean): Promise<"killed" | CrashReport> {
  const program = fileURLToPath(new URL("crash-platform.ts", import.meta.url));
  const flags = ["--conditions=@osbert/source", "--import", "tsx"];
  const child = spawn(process.execPath, [...flags, program, JSON.stringify(config)], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const looking = setInterval(() => isTime?.() === true && child.kill("SIGKILL"), 5);
  let [told, complained] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    told += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complained = (complained + text).slice(-2_000);
  });
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  clearInterval(looking);
  if (signal === "SIGKILL") return "killed";
  if (code !== 0) throw new Error(`the platform ended with ${code}: ${complained}`);
  return JSON.parse(told) as CrashReport;
}

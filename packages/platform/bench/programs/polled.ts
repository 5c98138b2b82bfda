import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Store } from "@osbert/journal";
import { sqliteStore } from "@osbert/journal/sqlite";
import { interposedStore } from "@osbert/journal/testing";
import { fill } from "../../../../tools/bench/fill.js";
import { atMost, count, megabytes, percentOfCore } from "../figure.js";
import { jumpingClock } from "../jumping-clock.js";
import { asking, type InstantBroker, openBench, space, startBroker, wanted } from "../open-bench.js";
import { measure } from "../program.js";

const hourMs = 3_600_000;
const megabyte = 2 ** 20;
const polled = { space, name: "polled" };

await measure(async ({ folder, quick }) => {
  const [instances, idleMs, hours] = quick ? [4_000, 2_000, 2] : [100_000, 10_000, 2];
  const [few, fewHours] = quick ? [200, 5] : [2_000, 15];
  const broker = await startBroker(String(hourMs / 1_000));
  // As much as it takes until everything is compiled and every buffer is there. Looked at while it is open and has just polled, as the other is: a
  // heap that has worked is larger than one that was closed, whatever is in it.
  const warmUp = await openPolled(join(folder, "warm-up.db"), broker, few);
  for (let passed = 0; passed < fewHours; passed++) await warmUp.hour();
  const before = await memory();
  await warmUp.stop();
  const polled = await openPolled(join(folder, "polled.db"), broker, instances);
  const begun = performance.now();
  for (let passed = 0; passed < hours; passed++) await polled.hour();
  const pollsPerSecond = (hours * instances * 1_000) / (performance.now() - begun);
  const after = await memory();
  const used = process.cpuUsage();
  await sleep(idleMs);
  const { user, system } = process.cpuUsage(used);
  const cpuShare = (user + system) / 1_000 / idleMs;
  await polled.stop();
  broker.end();
  const shown = instances.toLocaleString("en");
  const heapMb = (after.heapUsed - before.heapUsed) / megabyte;
  return [
    atMost(
      `memory that ${shown} polled instances take, after ${hours} hours`,
      ...([(after.rss - before.rss) / megabyte, 50, megabytes] as const),
      `resident ${mb(before.rss)} with ${few.toLocaleString("en")}, ${mb(after.rss)} with all; of that JavaScript's own ${heapMb.toFixed(1)} MB`,
    ),
    atMost(
      `CPU over ${idleMs / 1_000} s in which none of them is due`,
      ...([cpuShare * 100, 2, percentOfCore] as const),
      `${Math.round(cpuShare * idleMs)} ms of a core in ${idleMs} ms`,
    ),
    atMost(
      "commits for a poll that sees nothing new",
      ...([polled.written.commits / (hours * instances), 1, count] as const),
      `${Math.round(pollsPerSecond).toLocaleString("en")} polls a second while all were due`,
    ),
  ];
});

/** A platform with so many instances whose creation goes on at the broker, all to be asked for in an hour. */
async function openPolled(path: string, broker: InstantBroker, instances: number) {
  const clock = jumpingClock();
  const store = () => sqliteStore(path, { clock: clock.wallMs });
  const first = await openBench(store(), broker, { clock });
  const waits = first.until(1);
  await first.platform.instances.create(polled, wanted, asking);
  await waits;
  await first.platform.stop();
  fill(path, `instance/${polled.space}/${polled.name}`, instances - 1);
  const written = { commits: 0 };
  const { platform, until } = await openBench(counting(store(), written), broker, { clock });
  return {
    written,
    /** Resolves when all were asked for. */
    async hour(): Promise<void> {
      const asked = until(instances);
      // What was asked for last is due an hour after that.
      clock.jump(hourMs + 600_000);
      await asked;
    },
    stop: () => platform.stop(),
  };
}

function counting(store: Store, written: { commits: number }): Store {
  return interposedStore(store, ({ method, args }, go) => {
    if (method === "commit" && (args[0] as { readonly key: string }).key.startsWith("instance/")) written.commits++;
    return go();
  });
}

/** What is left when everything that can go has gone. */
async function memory(): Promise<NodeJS.MemoryUsage> {
  for (let times = 0; times < 3; times++) {
    await sleep(300);
    globalThis.gc?.();
  }
  return process.memoryUsage();
}

function mb(bytes: number): string {
  return `${Math.round(bytes / megabyte)} MB`;
}

import type { Benchmark } from "../benchmark.js";
import { newPlace } from "../places.js";
import { startProgram } from "../program.js";
import type { Told } from "../programs/sleeper.js";

const megabyte = 2 ** 20;

export const waiting: Benchmark = {
  name: "waiting",
  about:
    "100,000 operations that sleep for a day: resident memory of their process, and its CPU time while nothing is due",
  stores: ["SQLite", "PostgreSQL"],
  longestMs: 240_000,
  async run({ ground, stores, quick, tell }) {
    const operations = quick ? 4_000 : 100_000;
    const [warmUp, idleMs] = quick ? [1_000, 2_000] : [5_000, 10_000];
    for (const store of stores) {
      const place = newPlace(ground, store);
      const sleeper = startProgram<Told>("sleeper", { place, warmUp, operations, idleMs }, ["--expose-gc"]);
      const { before, after, cpuShare } = await sleeper.next();
      await sleeper.kill();
      const heapMb = (after.heapUsed - before.heapUsed) / megabyte;
      const shown = operations.toLocaleString("en");
      tell({
        what: `memory that ${shown} take`,
        store,
        value: (after.rss - before.rss) / megabyte,
        unit: "MB",
        target: { kind: "at most", value: 50 },
        beside: `resident ${mb(before.rss)} before, ${mb(after.rss)} after; of that JavaScript's own ${heapMb.toFixed(1)} MB`,
        details: {
          operations,
          rssBefore: before.rss,
          rssAfter: after.rss,
          heapGrowth: after.heapUsed - before.heapUsed,
        },
      });
      tell({
        what: `CPU over ${idleMs / 1000} s, ${shown} waiting`,
        store,
        value: cpuShare * 100,
        unit: "% CPU",
        target: { kind: "at most", value: 2 },
        beside: `${Math.round(cpuShare * idleMs)} ms of a core in ${idleMs} ms`,
        details: { operations, idleMs, cpuShare },
      });
    }
  },
};

function mb(bytes: number): string {
  return `${Math.round(bytes / megabyte)} MB`;
}

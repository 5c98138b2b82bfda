import { setTimeout as sleep } from "node:timers/promises";
import { timeOf } from "../../../../tools/bench/callers.js";
import { openBench } from "../operations.js";
import { connect, type Place } from "../places.js";
import { order, tell } from "../program.js";

export interface Order {
  readonly place: Place;
  readonly warmUp: number;
  readonly operations: number;
  readonly idleMs: number;
}

export interface Told {
  readonly before: NodeJS.MemoryUsage;
  readonly after: NodeJS.MemoryUsage;
  /** Of one core. */
  readonly cpuShare: number;
}

/** Lets operations go to sleep for a day, and tells what that costs in memory and, while nothing is due, in time. */
const { place, warmUp, operations, idleMs } = await order<Order>();
const { journal, lifecycle } = await openBench(connect(place).store);
await journal.start();
await timeOf(64, warmUp, () => lifecycle("one step"));
const before = await memory();
await timeOf(64, operations, () => lifecycle("sleeper"));
const after = await memory();
const used = process.cpuUsage();
await sleep(idleMs);
const { user, system } = process.cpuUsage(used);
tell({ before, after, cpuShare: (user + system) / 1000 / idleMs } satisfies Told);

/** What is left when everything that can go has gone. */
async function memory(): Promise<NodeJS.MemoryUsage> {
  for (let times = 0; times < 3; times++) {
    await sleep(300);
    globalThis.gc?.();
  }
  return process.memoryUsage();
}

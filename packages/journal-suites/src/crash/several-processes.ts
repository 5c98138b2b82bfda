import { setTimeout as sleep } from "node:timers/promises";
import { chanceOf } from "./chance.js";
import type { Run } from "./checks/evidence.js";
import type { StoreAddress } from "./child-config.js";
import { type CrashResult, crashResultOf } from "./crash-result.js";
import { Fleet, type Life } from "./fleet.js";
import type { ScenarioOptions } from "./scenario.js";

export interface SeveralProcessesOptions {
  /** The store to test: empty, and one that several processes can share. */
  readonly store: StoreAddress;
  /** Default 4. */
  readonly processes?: number;
  /** Default 5,000. */
  readonly operations?: number;
  /** Default "three steps". */
  readonly workload?: ScenarioOptions["workload"];
  /** So many are accepted a second, at most. Default 200. */
  readonly pace?: number;
  /** Default 1,500. A process is frozen for so long and half as long again. */
  readonly leaseMs?: number;
  readonly seed?: number;
  readonly log?: (line: string) => void;
  /** Is handed the evidence from which the result is made, for whoever wants to look at it. */
  readonly evidence?: (run: Run) => void;
}

const disturbEveryMs = 1_000;
const quietWithinMs = 60_000;
const keepsAll = { succeededMs: null, failedMs: null, cancelledMs: null, notesMs: null };

/**
 * Runs several engines on one store, with operations of three steps that are accepted through all of them. Every second one of them is
 * killed and replaced, or frozen for longer than its lease and thawed. In the end the same checks are made as after a crash.
 */
export async function severalProcesses(options: SeveralProcessesOptions): Promise<CrashResult> {
  const { processes = 4, operations = 5_000, pace = 200, leaseMs = 1_500, store, log = () => undefined } = options;
  const { seed = Math.floor(Math.random() * 1e9) } = options;
  const begun = performance.now();
  const scenario = { seed, operations, workload: options.workload ?? "three steps" };
  const fleet = new Fleet({ store, scenario, leaseMs, retention: keepsAll, window: 32 });
  const chance = chanceOf(seed + 1);
  try {
    const fleetNow: Life[] = Array.from({ length: processes }, () => fleet.spawn());
    await Promise.all(fleetNow.map(({ started }) => started));
    const from = performance.now();
    const pacer = setInterval(() => fleet.allow(((performance.now() - from) * pace) / 1_000), 50);
    const thaws: Promise<void>[] = [];
    while (!fleet.isAllAnswered) {
      await sleep(disturbEveryMs);
      const running = fleetNow.filter(({ state }) => state === "running");
      const life = chance.pick(running);
      if (running.length < 2) continue;
      if (chance.happens(0.5)) {
        fleet.kill(life);
        fleetNow[fleetNow.indexOf(life)] = fleet.spawn();
      } else {
        fleet.freeze(life);
        thaws.push(sleep(leaseMs * (1.2 + chance.next() / 2)).then(() => fleet.thaw(life)));
      }
      log(
        `${fleet.answered} of ${operations} accepted, ${fleet.lives.length - processes} killed, ${thaws.length} frozen`,
      );
    }
    clearInterval(pacer);
    await Promise.all(thaws);
    await Promise.all(fleetNow.map((life) => fleet.finish(life, quietWithinMs)));
    const dump = await fleet.dump();
    const run = { scenario: fleet.scenario, witnessed: fleet.witnessed, dump, leaseMs, keepsAll: true };
    options.evidence?.(run);
    return crashResultOf(run, seed, performance.now() - begun);
  } finally {
    await fleet.end();
  }
}

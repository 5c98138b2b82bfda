import { setTimeout as sleep } from "node:timers/promises";
import { disturb } from "./chaos/disturbance.js";
import { Scene } from "./chaos/scene.js";
import { stormOf } from "./chaos/storm.js";
import type { Need } from "./chaos/terms.js";
import type { Run } from "./checks/evidence.js";
import { type CrashResult, crashResultOf } from "./crash-result.js";
import { Fleet } from "./fleet.js";
import type { TemporaryStore } from "./store-addresses.js";

export interface ChaosSuiteOptions {
  /** The store to test. It must be empty. What it has no way to be done to it is not done. */
  readonly store: Omit<TemporaryStore, "remove">;
  /** How long to disturb. What follows takes some seconds more. Default 30,000. */
  readonly forMs?: number;
  /**
   * "short": leases are over after three seconds, and processes stand still for longer than that, so that whoever is late meets whoever
   * took over. "usual": they last for 30 seconds, and whoever has to wait for the end of one is found to have slept. Default "short".
   */
  readonly leases?: "short" | "usual";
  /** On a server. A file has one. Default 3. */
  readonly processes?: number;
  /** So many operations are accepted a second, at most. Default 60. */
  readonly pace?: number;
  /** The same seed gives the same scenario and the same storm; what it meets is up to the machine. Default: by chance. */
  readonly seed?: number;
  readonly log?: (line: string) => void;
  /** Is handed the evidence from which the result is made, for whoever wants to look at it. */
  readonly evidence?: (run: Run) => void;
}

const leaseMsOf = { short: 3_000, usual: 30_000 } as const;
/** What succeeded goes soon, so that there is something to prune. */
const retention = { succeededMs: 3_000, failedMs: null, cancelledMs: null, notesMs: null };
/** Callers give up soon, so that they ask again while what they asked first may still come to be. */
const timeoutMs = 3_000;
const quietWithinMs = 90_000;

/**
 * Runs engines in processes of their own, with clocks that differ, and disturbs them in every way that it knows: kills and freezes them,
 * cuts, delays and halves their connections, loses answers, ends their sessions, restarts their server, lets others try to open
 * their file. Then it leaves them alone, lets them finish, and compares what was witnessed with what the store holds.
 */
export async function chaosSuite(options: ChaosSuiteOptions): Promise<CrashResult> {
  const { store, forMs = 30_000, leases = "short", pace = 60, log = () => undefined } = options;
  const { seed = Math.floor(Math.random() * 1e9) } = options;
  const leaseMs = leaseMsOf[leases];
  const processes = store.server === undefined ? 1 : (options.processes ?? 3);
  const operations = Math.ceil((pace * forMs) / 1_000);
  const begun = performance.now();
  log(`seed ${seed}, ${leases} leases`);
  const fleet = new Fleet({
    store: store.address,
    scenario: { seed, operations, workload: "wild, some refused" },
    leaseMs,
    retention,
    window: 8,
    timeoutMs,
    keepTrying: true,
  });
  let scene: Scene | undefined;
  try {
    scene = await Scene.of(fleet, store, { processes, leaseMs, seed });
    await weather(scene, stormOf({ seed, forMs, processes, leaseMs, has: needsOf(store, leases) }), (elapsedMs) =>
      fleet.allow((elapsedMs * fleet.scenario.requests.length) / forMs),
    );
    fleet.askNoMore();
    log(`${fleet.answered} of ${fleet.scenario.requests.length} requests are answered, the rest follows in calm`);
    scene.calmDown();
    await fleet.allAnswered(quietWithinMs);
    await scene.finish(quietWithinMs);
    const { slowestClock } = scene;
    const run = {
      scenario: fleet.scenario,
      witnessed: fleet.witnessed,
      dump: await fleet.dump(),
      leaseMs,
      slowestClock,
    };
    const evidence = { ...run, keepsAll: false };
    options.evidence?.(evidence);
    return crashResultOf(evidence, seed, performance.now() - begun);
  } finally {
    await scene?.close();
    await fleet.end();
  }
}

function needsOf({ server, file }: ChaosSuiteOptions["store"], leases: "short" | "usual"): ReadonlySet<Need> {
  const needs: readonly (readonly [Need, unknown])[] = [
    // Of leases that are longer than a storm nothing would be seen.
    ["frozen processes", leases === "short" || undefined],
    ["a wire", server],
    ["sessions to end", server?.endSessions],
    ["entries to refuse", server?.refuseEntries],
    ["a server to restart", server?.restart],
    ["a file", file],
  ];
  return new Set(needs.flatMap(([need, there]) => (there === undefined ? [] : [need])));
}

/** All that the storm holds, at its time; resolves when the last of it is over. */
async function weather(
  scene: Scene,
  storm: ReturnType<typeof stormOf>,
  tick: (elapsedMs: number) => void,
): Promise<void> {
  const from = performance.now();
  const pacer = setInterval(() => tick(performance.now() - from), 50);
  const underWay: Promise<PromiseSettledResult<void>[]>[] = [];
  for (const { atMs, what } of storm) {
    await sleep(Math.max(0, from + atMs - performance.now()));
    const done = disturb(scene, what).then((hit) => void (hit > 0 && scene.fleet.noteDisturbed(what, hit)));
    underWay.push(Promise.allSettled([done]));
  }
  const results = (await Promise.all(underWay)).flat();
  clearInterval(pacer);
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

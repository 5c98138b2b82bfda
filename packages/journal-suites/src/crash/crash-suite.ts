import { setTimeout as sleep } from "node:timers/promises";
import { type CrashPoint, crashPoints } from "@osbert/journal";
import { type Chance, chanceOf } from "./chance.js";
import type { Run } from "./checks/evidence.js";
import type { StoreAddress } from "./child-config.js";
import { type CrashResult, crashResultOf } from "./crash-result.js";
import { Fleet } from "./fleet.js";

export interface CrashSuiteOptions {
  /** The store to test. It must be empty. */
  readonly store: StoreAddress;
  /** Default 200. */
  readonly kills?: number;
  /** The same seed gives the same scenario; where exactly a kill hits is up to the machine. Default: by chance. */
  readonly seed?: number;
  /** Default 8 for each kill. */
  readonly operations?: number;
  /** Called now and then with a line that says how far it is. */
  readonly log?: (line: string) => void;
  /** Is handed the evidence from which the result is made, for whoever wants to look at it. */
  readonly evidence?: (run: Run) => void;
}

const leaseMs = 300;
/** What succeeded goes soon, so that there is something to prune; the rest stays, so that there is something to check. */
const retention = { succeededMs: 300, failedMs: null, cancelledMs: null, notesMs: null };
/** A process that has not reached its crash point after so long is killed where it stands. */
const patienceMs = 300;
const quietWithinMs = 60_000;

/**
 * Runs an engine in a process of its own and kills it with SIGKILL, again and again: at each crash point, and at random instants.
 * Each time a new one goes on. The last one may finish; then everything that was witnessed is compared with what the store holds.
 */
export async function crashSuite(options: CrashSuiteOptions): Promise<CrashResult> {
  const { kills = 200, seed = Math.floor(Math.random() * 1e9), store, log = () => undefined } = options;
  const scenario = { seed, operations: options.operations ?? kills * 8, workload: "wild" } as const;
  const begun = performance.now();
  const fleet = new Fleet({ store, scenario, leaseMs, retention, window: 8 });
  try {
    const aims = new Aims(chanceOf(seed + 1));
    const requests = fleet.scenario.requests.length;
    // Something is left to be asked for at the end, in case there are points that have not been reached by then.
    const isOver = (lives: number) => lives >= kills && (aims.neverHit.length === 0 || lives >= kills * 1.5);
    for (let lives = 0; !isOver(lives); lives++) {
      fleet.allow(lives < kills ? (requests * 0.9 * (lives + 1)) / kills : requests * (0.9 + (lives / kills - 1) / 5));
      await liveAndDie(fleet, lives < kills ? aims.next() : aims.nextNeverHit(), aims);
      if ((lives + 1) % 25 === 0) log(`${lives + 1} of ${kills} kills, ${fleet.answered} of ${requests} requests`);
    }
    fleet.allow(requests);
    const last = fleet.spawn();
    await fleet.allAnswered(quietWithinMs);
    await fleet.finish(last, quietWithinMs);
    const dump = await fleet.dump();
    const run = { scenario: fleet.scenario, witnessed: fleet.witnessed, dump, leaseMs, keepsAll: false };
    options.evidence?.(run);
    return crashResultOf(run, seed, performance.now() - begun);
  } finally {
    await fleet.end();
  }
}

async function liveAndDie(fleet: Fleet, aim: Aim, aims: Aims): Promise<void> {
  const spawned = performance.now();
  const life = fleet.spawn(aim.kind === "at a point" ? aim : null);
  if (aim.kind === "at random") {
    if (aim.from === "its engine's start") await life.started;
    await Promise.race([sleep(aim.afterMs), life.ended]);
    fleet.kill(life);
    return life.ended;
  }
  // On a busy machine everything takes longer, as the start did.
  const patience = life.started.then(() => sleep(patienceMs + performance.now() - spawned));
  await Promise.race([patience, life.ended]);
  if (life.state === "ended") aims.hit(aim.point);
  else aims.missed(aim.point);
  fleet.kill(life);
  return life.ended;
}

type Aim =
  | { readonly kind: "at a point"; readonly point: CrashPoint; readonly nth: number }
  | { readonly kind: "at random"; readonly from: "its start" | "its engine's start"; readonly afterMs: number };

/** Where to kill next. Every point has its turn, and one that was missed has it again soon. */
class Aims {
  readonly #chance: Chance;
  readonly #hit = new Set<CrashPoint>();
  #points: CrashPoint[] = [];

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  get neverHit(): readonly CrashPoint[] {
    return crashPoints.filter((point) => !this.#hit.has(point));
  }

  next(): Aim {
    const chance = this.#chance;
    if (chance.happens(0.3)) {
      return chance.happens(0.2)
        ? { kind: "at random", from: "its start", afterMs: chance.between(0, 200) }
        : { kind: "at random", from: "its engine's start", afterMs: chance.between(0, 250) };
    }
    if (this.#points.length === 0) this.#points = shuffled(crashPoints, chance);
    const point = this.#points.shift() as CrashPoint;
    return { kind: "at a point", point, nth: rare.has(point) ? chance.between(1, 2) : chance.between(1, 6) };
  }

  nextNeverHit(): Aim {
    return { kind: "at a point", point: this.#chance.pick(this.neverHit), nth: 1 };
  }

  hit(point: CrashPoint): void {
    this.#hit.add(point);
  }

  missed(point: CrashPoint): void {
    this.#points.splice(Math.min(2, this.#points.length), 0, point);
  }
}

/** Points that a short life does not reach often. */
const rare: ReadonlySet<CrashPoint> = new Set([
  "before cancel is committed",
  "after cancel is committed",
  "before prune",
  "after prune",
  "before leases are renewed",
  "after leases are renewed",
  "before dead owners are reaped",
  "after dead owners are reaped",
  "before wait is recorded",
  "after wait is recorded",
  "before retry is recorded",
  "after retry is recorded",
]);

function shuffled<Item>(items: readonly Item[], chance: Chance): Item[] {
  return items
    .map((item) => ({ item, place: chance.next() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

import type { Mode, Outcome } from "@osbert/journal";
import { type Chance, chanceOf } from "./chance.js";

export interface ScenarioOptions {
  readonly seed: number;
  readonly operations: number;
  /**
   * "wild": everything that an operation can meet, so that every crash point is reached. "three steps": many plain operations with
   * three steps each, for several processes at once. "wild, some refused": as the first, and now and then a decision says no.
   */
  readonly workload: "wild" | "three steps" | "wild, some refused";
}

/** All that will be asked. The parent and its children make the same scenario of the same options. */
export interface Scenario {
  readonly requests: readonly Request[];
  readonly scripts: readonly Script[];
}

/** Operations that are accepted together, by one decision. */
export interface Request {
  readonly number: number;
  readonly key: string;
  readonly scripts: readonly Script[];
  /** The scenario's first request of the resource. */
  readonly opens: boolean;
  /** Its decision says no. */
  readonly refused: boolean;
}

/** What an operation will do. Its number is its identity for the witness, whatever id the journal gives it. */
export interface Script {
  readonly n: number;
  readonly key: string;
  readonly kind: "work" | "bounded";
  readonly mode: Mode;
  readonly lane: string;
  readonly steps: readonly StepScript[];
  readonly troubles: readonly Trouble[];
  readonly ending: Ending;
  /** From acceptance to the request for its end; `null`: nobody asks. */
  readonly cancelAfterMs: number | null;
  readonly deadlineMs: number | null;
  /** Nothing is left of the resource after it. */
  readonly leaves: boolean;
  /** Before its steps it looks so often for something that is not there yet. */
  readonly looks: number;
  /** After its steps it notes itself on this resource, which many share; `null`: on none. */
  readonly ledger: string | null;
}

export interface StepScript {
  readonly name: string;
  /** How long its effect takes. */
  readonly effectMs: number;
  /** A wait before it. */
  readonly sleepMs: number | null;
  readonly describes: boolean;
}

/** In an attempt with that number, the step goes wrong once. */
export interface Trouble {
  readonly attempt: number;
  readonly step: number;
  readonly kind: "before its effect" | "after its effect" | "later";
}

/** How an operation ends if nobody cancels it. The last three never get past their last step's effect, or never begin it. */
export type Ending = "returns" | "fails" | "exhausts" | "sleeps too long" | "waits too long" | "hangs";

/** Attempts of a "bounded" operation. */
export const boundedAttempts = 3;

export function scenarioOf(options: ScenarioOptions): Scenario {
  const chance = chanceOf(options.seed);
  const requests: Request[] = [];
  const scripts: Script[] = [];
  const opened = new Set<string>();
  while (scripts.length < options.operations) {
    const next = options.workload === "three steps" ? plainRequest : wildRequest;
    const asked = next(chance, scripts.length, options.operations);
    const key = asked[0]?.key ?? "";
    const refused = options.workload === "wild, some refused" && chance.happens(0.05);
    requests.push({ number: requests.length, key, scripts: asked, opens: !refused && !opened.has(key), refused });
    if (!refused) opened.add(key);
    scripts.push(...asked);
  }
  return { requests, scripts };
}

/** The ways in which an operation may end. */
export function outcomesOf(script: Script): readonly Outcome["kind"][] {
  const end = script.ending === "returns" ? "succeeded" : "failed";
  return script.cancelAfterMs === null ? [end] : [end, "cancelled"];
}

/** Resources whose operations never succeed. The suite keeps failed and cancelled ones for ever, so their journals have no gaps. */
export function isKeeper(key: string): boolean {
  return key.startsWith("keeper-");
}

/** More than stand in a resource's record: the rest waits in parts. */
const burst = 72;
const burstEvery = 300;

function wildRequest(chance: Chance, first: number, operations: number): readonly Script[] {
  if (first % burstEvery < 8 && first % burstEvery >= 4 && chance.happens(0.4)) {
    const key = `hot-${Math.floor(first / burstEvery)}`;
    return Array.from({ length: burst }, (_, index) => hotScript(chance, first + index, key));
  }
  const resources = Math.max(8, Math.ceil(operations / 12));
  const resource = chance.between(1, resources);
  if (chance.happens(0.04)) return [{ ...wildScript(chance, first, `leaver-${first}`), leaves: true }];
  const key = resource % 4 === 0 ? `keeper-${resource}` : `resource-${resource}`;
  const together = chance.happens(0.1) ? 3 : 1;
  return Array.from({ length: together }, (_, index) => wildScript(chance, first + index, key));
}

function wildScript(chance: Chance, n: number, key: string): Script {
  const ending = isKeeper(key) ? keeperEnding(chance) : chance.happens(0.85) ? "returns" : keeperEnding(chance);
  const overstays = ending === "sleeps too long" || ending === "waits too long" || ending === "hangs";
  const count = chance.between(1, 4);
  const steps = Array.from({ length: count }, (_, index) => wildStep(chance, index, ending !== "exhausts"));
  const last = steps.length - 1;
  if (ending === "sleeps too long") steps[last] = { ...(steps[last] as StepScript), sleepMs: 3_600_000 };
  return {
    n,
    key,
    kind: ending === "exhausts" ? "bounded" : "work",
    mode: chance.happens(0.5) ? "exclusive" : "shared",
    lane: `lane-${chance.between(0, 3)}`,
    steps,
    troubles: ending === "exhausts" || chance.happens(0.75) ? [] : troubles(chance, count),
    ending,
    cancelAfterMs: chance.happens(0.12) ? chance.between(0, 60) : null,
    deadlineMs: overstays ? chance.between(60, 300) : null,
    leaves: false,
    looks: ending !== "exhausts" && chance.happens(0.15) ? chance.between(1, 4) : 0,
    ledger: ledgerOf(chance),
  };
}

function keeperEnding(chance: Chance): Ending {
  const ways = ["fails", "fails", "fails", "fails", "exhausts", "sleeps too long", "waits too long", "hangs"] as const;
  return chance.pick(ways);
}

function wildStep(chance: Chance, index: number, mayRest: boolean): StepScript {
  const length = chance.next();
  const effectMs =
    length < 0.6
      ? 0
      : length < 0.85
        ? chance.between(1, 8)
        : length < 0.95
          ? chance.between(10, 40)
          : chance.between(100, 220);
  const sleepMs = mayRest && chance.happens(0.12) ? chance.pick([5, 30, 80, 500]) : null;
  return { name: `step ${index + 1}`, effectMs, sleepMs, describes: chance.happens(0.2) };
}

function troubles(chance: Chance, steps: number): readonly Trouble[] {
  const kinds = ["before its effect", "after its effect", "later"] as const;
  return Array.from({ length: chance.between(1, 2) }, (_, index) => ({
    attempt: index + 1,
    step: chance.between(0, steps - 1),
    kind: chance.pick(kinds),
  }));
}

function hotScript(chance: Chance, n: number, key: string): Script {
  return {
    n,
    key,
    kind: "work",
    mode: chance.happens(0.7) ? "exclusive" : "shared",
    lane: "lane-hot",
    steps: [{ name: "step 1", effectMs: 0, sleepMs: null, describes: false }],
    troubles: [],
    ending: "returns",
    cancelAfterMs: chance.happens(0.04) ? chance.between(0, 200) : null,
    deadlineMs: null,
    leaves: false,
    looks: 0,
    ledger: null,
  };
}

function plainRequest(chance: Chance, first: number, operations: number): readonly Script[] {
  const resources = Math.max(4, Math.ceil(operations / 16));
  const names = ["step 1", "step 2", "step 3"];
  return [
    {
      n: first,
      key: `resource-${chance.between(1, resources)}`,
      kind: "work",
      mode: chance.happens(0.5) ? "exclusive" : "shared",
      lane: `lane-${chance.between(0, 7)}`,
      steps: names.map((name) => ({ name, effectMs: chance.between(0, 30), sleepMs: null, describes: false })),
      troubles: chance.happens(0.05) ? troubles(chance, 3) : [],
      ending: "returns",
      cancelAfterMs: null,
      deadlineMs: null,
      leaves: false,
      looks: 0,
      ledger: ledgerOf(chance),
    },
  ];
}

function ledgerOf(chance: Chance): string | null {
  return chance.happens(0.3) ? `ledger-${chance.between(1, 8)}` : null;
}

import { type CrashPoint, crashPoints } from "@osbert/journal";
import type { Run } from "./checks/evidence.js";
import { storiesOf } from "./checks/evidence.js";
import type { Violation } from "./checks/violation.js";
import { violationsOf } from "./checks/violations-of.js";
import { type TakeOver, takeOverOf } from "./take-over.js";
import type { Witnessed } from "./witness.js";

/** What a run of the suite has shown. */
export interface CrashResult {
  readonly seed: number;
  /** Nothing: all promises were kept. */
  readonly violations: readonly Violation[];
  readonly kills: { readonly atPoints: number; readonly atRandom: number };
  readonly freezes: number;
  /** What else was disturbed, by kind: how often, and how many connections, sessions or files that hit. */
  readonly disturbances: Readonly<Record<string, { readonly times: number; readonly hit: number }>>;
  /** How often a process was killed at each crash point. */
  readonly points: Readonly<Record<CrashPoint, number>>;
  readonly neverReached: readonly CrashPoint[];
  readonly processes: number;
  readonly operations: number;
  /** How the operations ended, by outcome. */
  readonly outcomes: Readonly<Record<string, number>>;
  readonly attempts: number;
  readonly effects: number;
  /** Effects that a process let begin after it had stood still for longer than its lease, in the middle of a turn: nobody can prevent them. */
  readonly stalledEffects: number;
  /** From the start of a process to its engine's. */
  readonly startMs: number;
  readonly takeOver: TakeOver;
  readonly tookMs: number;
}

export function crashResultOf(run: Run, seed: number, tookMs: number): CrashResult {
  const { witnessed } = run;
  const points = Object.fromEntries(crashPoints.map((point) => [point, 0])) as Record<CrashPoint, number>;
  for (const event of witnessed) if (event.kind === "dies at") points[event.point]++;
  const stories = storiesOf(run);
  const outcomes: Record<string, number> = {};
  for (const { ends, acknowledged, refused } of stories) {
    const kind = refused ? "refused" : (ends?.[0]?.outcome.kind ?? (acknowledged ? "gone" : "never asked"));
    outcomes[kind] = (outcomes[kind] ?? 0) + 1;
  }
  const kills = (how: string) => count(witnessed, (event) => event.kind === "killed" && event.how === how);
  return {
    seed,
    violations: violationsOf(run),
    kills: { atPoints: kills("at a point"), atRandom: kills("at random") },
    freezes: count(witnessed, ({ kind }) => kind === "frozen"),
    disturbances: disturbancesOf(witnessed),
    points,
    neverReached: crashPoints.filter((point) => points[point] === 0),
    processes: count(witnessed, ({ kind }) => kind === "spawned"),
    operations: stories.length,
    outcomes,
    attempts: count(witnessed, ({ kind }) => kind === "attempt begins"),
    effects: count(witnessed, ({ kind }) => kind === "effect begins"),
    stalledEffects: stories.reduce(
      (sum, { effects }) => sum + effects.filter(({ at, allowedAt }) => at > allowedAt).length,
      0,
    ),
    startMs: startMsOf(witnessed),
    takeOver: takeOverOf(witnessed),
    tookMs,
  };
}

function count(witnessed: readonly Witnessed[], counts: (event: Witnessed) => boolean): number {
  return witnessed.filter(counts).length;
}

function disturbancesOf(witnessed: readonly Witnessed[]): CrashResult["disturbances"] {
  const disturbances: Record<string, { times: number; hit: number }> = {};
  for (const event of witnessed) {
    if (event.kind !== "disturbed" || event.what.kind === "kill" || event.what.kind === "freeze") continue;
    const { times, hit } = disturbances[event.what.kind] ?? { times: 0, hit: 0 };
    disturbances[event.what.kind] = { times: times + 1, hit: hit + event.hit };
  }
  return disturbances;
}

function startMsOf(witnessed: readonly Witnessed[]): number {
  const spawned = new Map<number, number>();
  const took: number[] = [];
  for (const { kind, process, at } of witnessed) {
    if (kind === "spawned") spawned.set(process, at);
    else if (kind === "started") took.push(at - (spawned.get(process) ?? at));
  }
  return took.sort((a, b) => a - b)[Math.floor(took.length / 2)] ?? Number.NaN;
}

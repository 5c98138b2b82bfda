import type { Json, Outcome } from "@osbert/journal";
import type { DumpedResource } from "../dump.js";
import type { Scenario, Script } from "../scenario.js";
import type { Witnessed } from "../witness.js";

/** All that is known after a run: what was planned, what was witnessed, what the store holds in the end. */
export interface Run {
  readonly scenario: Scenario;
  readonly witnessed: readonly Witnessed[];
  readonly dump: readonly DumpedResource[];
  readonly leaseMs: number;
  /** Retention took nothing: journals must be without gaps. */
  readonly keepsAll: boolean;
  /** The rate of the slowest clock. Default 1. */
  readonly slowestClock?: number;
}

type Heard<Kind extends Witnessed["kind"]> = Extract<Witnessed, { kind: Kind }>;

/** One run of an operation's function. */
export interface AttemptSeen {
  readonly attempt: string;
  readonly process: number;
  /** Results of steps that it found recorded. */
  readonly recorded: Readonly<Record<string, string>>;
  /** As for an effect. */
  readonly allowedAt: number;
  /**
   * It may have begun in a process that was taken for dead without a word, less than a second after the store's last one (J3 says so):
   * connections were disturbed, and nothing of what it did was recorded.
   */
  readonly inVain: boolean;
}

export interface Effect {
  readonly at: number;
  readonly step: string;
  readonly attempt: string;
  readonly process: number;
  readonly idempotencyKey: string;
  /** `null`: its end was not witnessed. */
  readonly endAt: number | null;
  readonly value: string | null;
  /** Until when it was under way for certain: a process that is frozen in the middle tells a late end. */
  readonly surelyUntil: number;
  /**
   * When the engine can have looked at its lease for the last time: when the effect began, or, if the process stood still just before
   * that for so long that the lease may have gone to another one, when the standstill began. What happened later it could not know.
   */
  readonly allowedAt: number;
}

export interface End {
  readonly id: string;
  readonly outcome: Outcome;
}

/** All that is known of one operation. */
export interface Story {
  readonly script: Script;
  /** Ids that the journal gave it: one. */
  readonly ids: ReadonlySet<string>;
  /** Someone was told that it is accepted. */
  readonly acknowledged: boolean;
  /** Someone was told that it is not. */
  readonly refused: boolean;
  readonly attempts: readonly AttemptSeen[];
  readonly effects: readonly Effect[];
  readonly done: readonly Heard<"step done">[];
  readonly waits: readonly (Heard<"wait begins"> | Heard<"wait over">)[];
  readonly looks: readonly Heard<"looks">[];
  readonly settled: readonly Heard<"settled">[];
  readonly cancels: readonly Heard<"cancel answered">[];
  readonly resource: DumpedResource | undefined;
  /** Its ends as the store has them; `undefined`: the store does not know it. */
  readonly ends: readonly End[] | undefined;
}

export function storiesOf(run: Run): readonly Story[] {
  const { scenario } = run;
  const margin = marginMs(run);
  const witnessed = [...run.witnessed].sort((a, b) => a.at - b.at);
  const resources = new Map(run.dump.map((resource) => [resource.record.key, resource]));
  const drafts = scenario.scripts.map((script) => draftOf(script, resources.get(script.key)));
  const byId = new Map<string, Draft>();
  for (const event of witnessed) hear(event, scenario, drafts, byId, margin);
  for (const event of witnessed) if (event.kind === "settled") byId.get(event.key + event.id)?.settled.push(event);
  const isCutOff = cutOffs(witnessed);
  for (const draft of drafts) {
    const recording = new Set(draft.done.filter(({ ran }) => ran).map(({ attempt }) => attempt));
    draft.attempts = draft.attempts.map((seen) => ({
      ...seen,
      inVain: !recording.has(seen.attempt) && isCutOff(seen.allowedAt, seen.allowedAt),
    }));
    draft.effects = draft.effects.map((effect) =>
      isCutOff(effect.allowedAt, effect.surelyUntil) ? { ...effect, surelyUntil: effect.allowedAt } : effect,
    );
  }
  return drafts;
}

/** How long before it is told of a disturbance may have begun, and how long after it a process may not know that it is taken for dead. */
const longestDisturbanceMs = 8_000;
const noticedWithinMs = 4_000;
const ofTheProcess: ReadonlySet<string> = new Set(["kill", "freeze", "rival"]);

/**
 * Whether connections were disturbed at about that time. A process that lives and has lost its sessions is taken for dead: what it does
 * then goes on beside its successor until it notices (J3 says so), and is under way for certain no longer than it takes to begin.
 */
function cutOffs(witnessed: readonly Witnessed[]): (from: number, to: number) => boolean {
  const times = witnessed.flatMap((event) =>
    event.kind === "disturbed" && !ofTheProcess.has(event.what.kind) ? [event.at] : [],
  );
  return (from, to) => times.some((at) => to >= at - longestDisturbanceMs && from <= at + noticedWithinMs);
}

type Writable<T> = { -readonly [Name in keyof T]: T[Name] extends readonly (infer Item)[] ? Item[] : T[Name] };
type Draft = Omit<Writable<Story>, "ids" | "ends"> & { ids: Set<string>; ends: End[] | undefined };

function draftOf(script: Script, resource: DumpedResource | undefined): Draft {
  const part = resource?.parts.find(({ id }) => id === `operation/${script.n}`);
  const kept = part && (JSON.parse(part.body) as { ends?: readonly (Record<string, Json> & { id: string })[] });
  const ends = kept && (kept.ends ?? []).map(({ id, ...outcome }) => ({ id, outcome: outcome as unknown as Outcome }));
  const ids = new Set<string>();
  for (const entry of resource?.entries ?? []) {
    if (entry.kind !== "accepted" || entry.operation === null) continue;
    const { payload } = JSON.parse(entry.body) as { payload: { input: { n: number } } };
    if (payload.input.n === script.n) ids.add(entry.operation);
  }
  return {
    script,
    ids,
    acknowledged: false,
    refused: false,
    attempts: [],
    effects: [],
    done: [],
    waits: [],
    looks: [],
    settled: [],
    cancels: [],
    resource,
    ends,
  };
}

function hear(
  event: Witnessed,
  scenario: Scenario,
  drafts: readonly Draft[],
  byId: Map<string, Draft>,
  margin: number,
): void {
  const know = (draft: Draft, id: string) => {
    draft.ids.add(id);
    byId.set(draft.script.key + id, draft);
  };
  if (event.kind === "accepted") {
    for (const [index, { n }] of (scenario.requests[event.request]?.scripts ?? []).entries()) {
      const draft = drafts[n] as Draft;
      draft.acknowledged = true;
      const id = event.ids?.[index];
      if (id !== undefined) know(draft, id);
    }
    return;
  }
  if (event.kind === "refused") {
    for (const { n } of scenario.requests[event.request]?.scripts ?? []) (drafts[n] as Draft).refused = true;
    return;
  }
  const draft = "n" in event ? drafts[event.n] : undefined;
  if (draft === undefined) return;
  if (event.kind === "attempt begins") {
    know(draft, event.id);
    draft.attempts.push({ ...event, allowedAt: allowedAt(event, margin), inVain: false });
  } else if (event.kind === "effect begins") draft.effects.push(begun(event, margin));
  else if (event.kind === "effect ends") endEffect(draft, event, margin);
  else if (event.kind === "step done") draft.done.push(event);
  else if (event.kind === "wait begins" || event.kind === "wait over") draft.waits.push(event);
  else if (event.kind === "looks") draft.looks.push(event);
  else if (event.kind === "cancel answered") draft.cancels.push(event);
}

/** An engine lets an effect begin only if its lease runs for so long yet; one with a slow clock takes it to run longer than it does. */
export function marginMs({ leaseMs, slowestClock = 1 }: Pick<Run, "leaseMs" | "slowestClock">): number {
  return leaseMs - (leaseMs - Math.min(1_000, leaseMs / 5)) / slowestClock;
}

function allowedAt({ at, turnAt }: { readonly at: number; readonly turnAt: number }, margin: number): number {
  return at - turnAt >= margin ? turnAt : at;
}

function begun(event: Heard<"effect begins">, margin: number): Effect {
  const { at, step, attempt, process, idempotencyKey } = event;
  const from = allowedAt(event, margin);
  return { at, step, attempt, process, idempotencyKey, endAt: null, value: null, surelyUntil: from, allowedAt: from };
}

function endEffect(draft: Draft, { at, step, attempt, value }: Heard<"effect ends">, margin: number): void {
  const index = draft.effects.findIndex((effect) => effect.step === step && effect.attempt === attempt);
  const effect = draft.effects[index];
  if (effect === undefined) return;
  const { effectMs = 0 } = draft.script.steps.find(({ name }) => name === step) ?? {};
  const surelyUntil = Math.min(at, effect.allowedAt + Math.min(effectMs, margin));
  draft.effects[index] = { ...effect, endAt: at, value, surelyUntil };
}

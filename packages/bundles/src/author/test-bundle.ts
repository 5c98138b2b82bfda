import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Json, JsonObject } from "@osbert/protocol";
import { type BundleState, nothingKept } from "../catalog/action-input.js";
import type { Action, BundleSpec, PlanSpec } from "../formats/bundle-spec.js";
import type { JobSecrets } from "../runners/runner.js";
import { localInput } from "./local-input.js";
import type { TriedAction, TryAction } from "./try-action.js";

export interface LifeCycle {
  readonly spec: BundleSpec;
  readonly plan: PlanSpec;
  /** As an operator would give them. */
  readonly secrets?: JobSecrets;
  readonly parameters: { readonly [action in "provision" | "update" | "bind"]: JsonObject };
}

/** What was found of one action, which was run twice. */
export interface ActionReport {
  readonly action: Action;
  readonly result: "passed" | "failed" | "left out";
  readonly problems: readonly string[];
  readonly advice: readonly string[];
  /** Of the run that went wrong, or else of the second one. */
  readonly log: string;
}

/** The order of a life. */
const order = ["provision", "bind", "unbind", "update", "deprovision"] as const;

const mostTries = 20;
const longestPauseSeconds = 30;

/**
 * Lives the life of one instance with one binding, and runs every action twice with the same input and the same idempotency key, as a
 * broker does when a machine is switched off under the first run. After a failure the rest is left out but for unbind and deprovision, so
 * that nothing is left behind.
 */
export async function* testBundle(
  { spec, plan, parameters, secrets = {} }: LifeCycle,
  tryAction: TryAction,
  signal: AbortSignal,
): AsyncGenerator<ActionReport> {
  const ids = { instance: `test-${randomUUID()}`, binding: `test-${randomUUID()}` };
  let [state, bindingState]: readonly BundleState[] = [nothingKept, nothingKept];
  let has = parameters.provision;
  const begun = new Set<Action>();
  let isWell = true;
  for (const action of order) {
    const removes = action === "unbind" ? "bind" : action === "deprovision" ? "provision" : null;
    if (!isCalled(action, spec, plan) || (removes === null ? !isWell : !begun.has(removes))) {
      yield { action, result: "left out", problems: [], advice: [], log: "" };
      continue;
    }
    const given = action === "unbind" ? parameters.bind : action === "deprovision" ? has : parameters[action];
    const input = localInput(spec, {
      ...{ action, plan, parameters: given, previousParameters: has, ...ids },
      ...{ state: state ?? nothingKept, bindingState: bindingState ?? nothingKept, secrets },
    });
    begun.add(action);
    const key = randomUUID();
    const first = await untilItEnds(tryAction, action, key, input, signal);
    const runs = [first];
    if (isGoodEnd(first, action, spec)) runs.push(await untilItEnds(tryAction, action, key, input, signal));
    for (const { output } of runs) {
      if (action === "bind") bindingState = after(bindingState ?? nothingKept, output);
      else state = after(state ?? nothingKept, output);
    }
    const report = judge(action, spec, runs);
    isWell &&= report.result === "passed";
    if (action === "update" && isWell) has = { ...has, ...parameters.update };
    yield report;
  }
}

function isCalled(action: Action, { actions, format }: BundleSpec, plan: PlanSpec): boolean {
  if (action === "deprovision") return true;
  if (action === "bind" || action === "unbind") return plan.bindable && actions.includes(action);
  return actions.includes(action) && (format === "osbert" || action !== "update" || plan.updatesTo.length > 0);
}

/** Tries again for as long as the bundle asks for it, within reason. */
async function untilItEnds(
  tryAction: TryAction,
  action: Action,
  key: string,
  input: JsonObject,
  signal: AbortSignal,
): Promise<TriedAction> {
  for (let tries = 1; ; tries++) {
    const tried = await tryAction(action, key, input);
    if (tried.end.kind !== "try again" || tries === mostTries) return tried;
    await sleep(Math.min(tried.end.afterSeconds ?? 1, longestPauseSeconds) * 1_000, undefined, { signal });
  }
}

function after({ state, credentials }: BundleState, output: TriedAction["output"]): BundleState {
  return { state: { ...state, ...output.state }, credentials: output.credentials ?? credentials };
}

/** A classic bundle says only with exit code 8 that it has no action for bindings; one of the own format names its actions. */
function isGoodEnd({ end }: TriedAction, action: Action, { format }: BundleSpec): boolean {
  if (end.kind === "done") return true;
  return end.kind === "not known" && format === "apb" && (action === "bind" || action === "unbind");
}

function judge(action: Action, spec: BundleSpec, runs: readonly TriedAction[]): ActionReport {
  const problems: string[] = [];
  const advice: string[] = [];
  const last = runs.at(-1);
  const [first, second] = runs;
  runs.forEach((run, index) => {
    if (isGoodEnd(run, action, spec)) return;
    const which = index === 0 ? "the first run" : "the second run with the same idempotency key";
    problems.push(`${which} ${describeEnd(run)}`);
  });
  if (action === "bind" && first?.end.kind === "done" && first.output.credentials === null)
    problems.push("it printed no credentials");
  if (problems.length === 0 && first !== undefined && second !== undefined) {
    const { credentials, state } = first.output;
    const credentialsDiffer = shapeDifference(credentials, second.output.credentials);
    if (credentialsDiffer !== null)
      problems.push(`the second run printed credentials of another shape: ${credentialsDiffer}`);
    const stateDiffers = shapeDifference(state, second.output.state);
    if (stateDiffers !== null) problems.push(`the second run printed state of another shape: ${stateDiffers}`);
    for (const name of changedKeys(state, second.output.state))
      advice.push(`state.${name} was another in the second run: is what the first run made still known, and removed?`);
  }
  return { action, result: problems.length === 0 ? "passed" : "failed", problems, advice, log: last?.log ?? "" };
}

/** How a run ended, as the rest of a sentence. */
export function describeEnd({ end, exitCode }: TriedAction): string {
  const code = exitCode === null ? "" : ` (exit code ${exitCode})`;
  switch (end.kind) {
    case "done":
      return `is done${code}`;
    case "refused":
      return `refused: ${end.text}${code}`;
    case "try again":
      return `asks to be tried again${end.afterSeconds === null ? "" : ` after ${end.afterSeconds} s`}${code}`;
    case "not known":
      return `does not know the action${code}`;
    case "failed":
      return `failed: ${end.reason}`;
    case "lost":
      return `was lost: ${end.why}`;
  }
}

/** Where two values have other names or types, or `null`. Of the values themselves nothing is told: they may be secrets. */
export function shapeDifference(one: Json | undefined, other: Json | undefined, at = ""): string | null {
  const [kind, otherKind] = [kindOf(one), kindOf(other)];
  if (kind !== otherKind) return `${at === "" ? "it" : at} is ${kind} and then ${otherKind}`;
  if (kind !== "an object") return null;
  const [a, b] = [one as JsonObject, other as JsonObject];
  for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const difference = shapeDifference(a[name], b[name], at === "" ? name : `${at}.${name}`);
    if (difference !== null) return difference;
  }
  return null;
}

function kindOf(value: Json | undefined): string {
  if (value === undefined || value === null) return "nothing";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function changedKeys(one: JsonObject, other: JsonObject): readonly string[] {
  return Object.keys(one).filter((name) => JSON.stringify(one[name]) !== JSON.stringify(other[name]));
}

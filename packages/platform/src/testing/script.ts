import { isJsonObject } from "@osbert/protocol";
import {
  calls,
  type MisbehavingCall,
  type Misbehaviour,
  MisbehaviourError,
  parseMisbehaviour,
} from "./misbehaviour.js";
import { type MisbehaviourName, namedMisbehaviour } from "./named-misbehaviours.js";

/** A name, or a misbehaviour written out. */
export type Step = MisbehaviourName | Misbehaviour;

/** One step for every request, or a list for one request after the other; after its end the broker is good. */
export type Script = Step | readonly Step[];

/** What is done when. The first rule that fits and is not used up counts. */
export interface Rule {
  /** Default: every call. */
  readonly call?: MisbehavingCall | readonly MisbehavingCall[];
  /** Ids, and the name or id of the plan that the request is about. */
  readonly instance?: string;
  readonly binding?: string;
  readonly plan?: string;
  /** So many requests that fit are left to the next rule first. */
  readonly skip?: number;
  readonly do: Script;
}

/** The step for the request that is number `count` (from 0) of its kind. `undefined`: the script is at its end. */
export function stepAt(script: Script, count: number): Misbehaviour | undefined {
  const step = isList(script) ? script[count] : script;
  return typeof step === "string" ? namedMisbehaviour(step) : step;
}

export function isList(script: Script): script is readonly Step[] {
  return Array.isArray(script);
}

/** Throws a MisbehaviourError. */
export function parseScript(value: unknown, path: string): Script {
  return Array.isArray(value) ? value.map((one, at) => parseStep(one, `${path}[${at}]`)) : parseStep(value, path);
}

/** Throws a MisbehaviourError. */
export function parseRules(value: unknown): readonly Rule[] {
  if (!Array.isArray(value)) throw new MisbehaviourError("rules must be a list");
  if (value.length > mostRules) throw new MisbehaviourError(`there must be at most ${mostRules} rules`);
  return value.map((one: unknown, at) => parseRule(one, `rules[${at}]`));
}

/** What a request's parameters say of this request (`own`), and by call of later ones on the same thing. */
export interface ParsedWish {
  readonly own: Script | undefined;
  readonly later: Partial<Record<MisbehavingCall, Script>>;
}

/** Throws a MisbehaviourError. */
export function parseWish(parameters: unknown): ParsedWish {
  const wish = isJsonObject(parameters) && Object.hasOwn(parameters, "misbehave") ? parameters.misbehave : undefined;
  if (wish === undefined) return { own: undefined, later: {} };
  const isByCall = isJsonObject(wish) && Object.keys(wish).every((name) => isCall(name));
  if (!isByCall) return { own: parseScript(wish, "misbehave"), later: {} };
  const later = Object.entries(wish).map(([name, script]) => [name, parseScript(script, `misbehave.${name}`)]);
  return { own: undefined, later: Object.fromEntries(later) as ParsedWish["later"] };
}

const mostRules = 1_000;

function parseStep(value: unknown, path: string): Step {
  if (typeof value !== "string") return parseMisbehaviour(value, path);
  if (namedMisbehaviour(value) === undefined)
    throw new MisbehaviourError(`${path}: there is no misbehaviour ${JSON.stringify(value)}`);
  return value as MisbehaviourName;
}

function parseRule(value: unknown, path: string): Rule {
  if (!isJsonObject(value)) throw new MisbehaviourError(`${path} must be an object`);
  const { call, instance, binding, plan, skip, do: script, ...others } = value;
  for (const name of Object.keys(others)) throw new MisbehaviourError(`${path}.${name} is not known`);
  for (const one of call === undefined ? [] : [call].flat())
    if (!isCall(one)) throw new MisbehaviourError(`${path}.call must be one or several of ${calls.join(", ")}`);
  for (const [name, one] of Object.entries({ instance, binding, plan }))
    if (one !== undefined && typeof one !== "string") throw new MisbehaviourError(`${path}.${name} must be a text`);
  if (skip !== undefined && !(Number.isInteger(skip) && (skip as number) >= 0))
    throw new MisbehaviourError(`${path}.skip must be a whole number`);
  return { ...(value as Omit<Rule, "do">), do: parseScript(script, `${path}.do`) };
}

function isCall(value: unknown): value is MisbehavingCall {
  return calls.some((call) => call === value);
}

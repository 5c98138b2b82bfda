import { hasInfinity, isDeeperThan, isJsonObject, type JsonObject } from "@osbert/protocol";
import type { BundleFormat } from "../sources/source.js";
import { GrowingState } from "./growing-state.js";
import { redact } from "./redact.js";
import type { JobState } from "./runner.js";

/** What a bundle has said on standard output, as far as it was read. */
export interface ActionOutput {
  /** The latest. For a platform's users: at most 1,000 characters, no control characters. */
  readonly progress: string | null;
  /** Merged key by key, later lines over earlier ones. */
  readonly state: JsonObject;
  readonly credentials: JsonObject | null;
  readonly dashboard: string | null;
  readonly refused: string | null;
  readonly retryAfterSeconds: number | null;
  /** Lines read so far. */
  readonly lines: number;
  /** How many of them have told a state. */
  readonly stateLines: number;
  /** The first line that is not of the contract. Its content is told nowhere: it may be a secret. */
  readonly rubbish: { readonly line: number; readonly why: string } | null;
}

export const noOutput: ActionOutput = {
  progress: null,
  state: {},
  credentials: null,
  dashboard: null,
  refused: null,
  retryAfterSeconds: null,
  lines: 0,
  stateLines: 0,
  rubbish: null,
};

/** What the codes mean that a bundle exits with. Every other is a failure. */
export const exitCodes = { done: 0, notKnown: 8, refused: 64, tryAgain: 75 } as const;

/** Of a program that SIGKILL has ended. */
const killedCode = 137;

/** What an action came to. */
export type ActionEnd =
  | { readonly kind: "done" }
  | { readonly kind: "refused"; readonly text: string }
  /** `null`: the bundle did not say when. */
  | { readonly kind: "try again"; readonly afterSeconds: number | null }
  /** The bundle does not have this action. Of a bind or an unbind that is as good as done, of any other action it is a failure. */
  | { readonly kind: "not known" }
  | { readonly kind: "failed"; readonly reason: string }
  /** Nobody knows how it ended. It is to be started again, under another id: a bundle's actions may run twice. */
  | { readonly kind: "lost"; readonly why: string };

const maxLineCharacters = 1_048_576;
const maxTextCharacters = 1_000;
const maxUrlCharacters = 4_096;
const maxObjectCharacters = 262_144;
/** Whoever follows the output keeps the state each time it grows. */
const maxStateLines = 1_000;
const maxDepth = 64;
const maxRetryAfterSeconds = 86_400;

/**
 * Reads on, where the last read ended. Texts for people are without `secrets`: whole, before anything is cut from them, because half a secret
 * would not be found any more.
 */
export function readOutput(
  before: ActionOutput,
  lines: readonly string[],
  secrets: readonly unknown[] = [],
): ActionOutput {
  const state = new GrowingState(before.state, maxObjectCharacters);
  const after = lines.reduce((output, line) => readLine(output, line, { state, secrets }), before);
  return { ...after, state: state.value };
}

/** What has become of a job that does not run any more. `null`: it runs, or was never started. Exit codes mean what its format says. */
export function endOf(state: JobState, output: ActionOutput, format: BundleFormat = "osbert"): ActionEnd | null {
  switch (state.kind) {
    case "unknown":
    case "running":
      return null;
    case "lost":
      return { kind: "lost", why: state.why };
    case "ended":
      return state.cause === "exit"
        ? exited(state.exitCode, output, format)
        : failed(`${endedEarly[state.cause]}${lastWords(output)}`);
  }
}

type Ended = Extract<JobState, { kind: "ended" }>;

const endedEarly: Readonly<Record<Exclude<Ended["cause"], "exit">, string>> = {
  timeout: "the bundle took longer than it may, and was ended",
  output: "the bundle printed more than it may, and was ended",
  memory: "the bundle needed more memory than it may have, and was ended",
  disk: "the disk of the runner is full",
  start: "the engine could not start the container; its log says why",
  stopped: "the bundle was stopped",
};

function exited(code: number, output: ActionOutput, format: BundleFormat): ActionEnd {
  if (code === exitCodes.notKnown) return { kind: "not known" };
  if (output.rubbish !== null) {
    return failed(`line ${output.rubbish.line} of the bundle's standard output ${output.rubbish.why}`);
  }
  if (code === exitCodes.done) return { kind: "done" };
  // Classic bundles know these two alone: in theirs, others are what some program inside happened to end with.
  if (format === "apb") return failed(`${endedWith(code)}${lastWords(output)}`);
  switch (code) {
    case exitCodes.refused:
      return { kind: "refused", text: output.refused ?? "the bundle refused it without a reason" };
    case exitCodes.tryAgain:
      return { kind: "try again", afterSeconds: output.retryAfterSeconds };
    default:
      return failed(`${endedWith(code)}${lastWords(output)}`);
  }
}

function lastWords({ refused }: ActionOutput): string {
  return refused === null ? "" : `: ${refused}`;
}

/** Not every engine says that it was for the memory, and others can send the signal, too. */
function endedWith(code: number): string {
  if (code !== killedCode) return `the bundle ended with exit code ${code}`;
  return `the bundle was killed (exit code ${code}), as happens to one that needs more memory than it may have`;
}

function failed(reason: string): ActionEnd {
  return { kind: "failed", reason };
}

interface Reading {
  /** What is said of the state is merged into this, not into what is returned. */
  readonly state: GrowingState;
  readonly secrets: readonly unknown[];
}

function readLine(before: ActionOutput, line: string, reading: Reading): ActionOutput {
  const number = before.lines + 1;
  const said = line.trim() === "" ? {} : parseLine(line, before.stateLines, reading);
  if (typeof said !== "string") return { ...before, ...said, lines: number };
  return { ...before, lines: number, rubbish: before.rubbish ?? { line: number, why: said } };
}

type Said = Partial<Omit<ActionOutput, "lines" | "state" | "rubbish">>;

/** What a line says, or why it says nothing. No answer quotes the line, nor what JSON.parse says of it: that quotes it. */
function parseLine(line: string, stateLines: number, reading: Reading): Said | string {
  if (line.length > maxLineCharacters) return `is longer than ${maxLineCharacters} characters`;
  if (isDeeperThan(line, maxDepth)) return `is nested deeper than ${maxDepth}`;
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return "is not JSON; print for people on standard error";
  }
  if (!isJsonObject(value)) return "is not a JSON object";
  if (hasInfinity(value)) return "has a number in it that is too large";
  const names = Object.keys(value);
  const [name] = names;
  if (name === undefined || names.length > 1 || !Object.hasOwn(readers, name)) {
    return `is not an object with exactly one of ${Object.keys(readers).join(", ")}`;
  }
  return readers[name as keyof typeof readers](value[name], stateLines, reading);
}

const readers = {
  progress: (value: unknown, _: number, { secrets }: Reading) =>
    typeof value === "string" ? { progress: forPeople(value, secrets) } : 'has a "progress" that is not a text',
  state: (value: unknown, stateLines: number, { state }: Reading) => {
    if (!isJsonObject(value)) return notAnObject("state");
    if (stateLines >= maxStateLines) return `tells a "state" after ${maxStateLines} lines that did`;
    return state.merge(value) ? { stateLines: stateLines + 1 } : tooLarge("state");
  },
  credentials: (value: unknown) => {
    if (!isJsonObject(value)) return notAnObject("credentials");
    return JSON.stringify(value).length > maxObjectCharacters ? tooLarge("credentials") : { credentials: value };
  },
  dashboard: (value: unknown) =>
    isWebAddress(value) ? { dashboard: value } : 'has a "dashboard" that is not an http or https address',
  refused: (value: unknown, _: number, { secrets }: Reading) =>
    typeof value === "string" ? { refused: forPeople(value, secrets) } : 'has a "refused" that is not a text',
  retryAfterSeconds: (value: unknown) =>
    typeof value === "number" && value >= 0
      ? { retryAfterSeconds: Math.min(value, maxRetryAfterSeconds) }
      : 'has a "retryAfterSeconds" that is not a number from 0 on',
} as const;

function notAnObject(name: string): string {
  return `has a "${name}" that is not an object`;
}

function tooLarge(name: string): string {
  return `makes "${name}" larger than ${maxObjectCharacters} characters`;
}

function isWebAddress(value: unknown): value is string {
  if (typeof value !== "string" || value.length > maxUrlCharacters || !URL.canParse(value)) return false;
  return ["http:", "https:"].includes(new URL(value).protocol);
}

function forPeople(text: string, secrets: readonly unknown[]): string {
  return redact(text, secrets)
    .slice(0, maxTextCharacters)
    .replaceAll(/\p{Cc}+/gu, " ")
    .trim();
}

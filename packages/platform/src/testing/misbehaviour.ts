import { isJsonObject, type Json } from "@osbert/protocol";

/** What a broker is asked for. */
export const calls = [
  "catalog",
  "provision",
  "update",
  "deprovision",
  "fetch",
  "poll",
  "bind",
  "unbind",
  "fetch-binding",
  "poll-binding",
] as const;
export type MisbehavingCall = (typeof calls)[number];

/**
 * How one request is taken. Each field spoils one thing, and they may be put together: `{"effect": "done", "answerBytes": 20}` does what was
 * asked for and breaks off after 20 bytes of the answer. An empty one is a good broker.
 */
export interface Misbehaviour {
  /**
   * Whether it does what was asked for: at once, never, or `late`, after `lateMs`, whatever it answered. Default: `done`, but `none` with a
   * `status` that is no 2xx, and where the request is not read.
   */
  readonly effect?: "done" | "none" | "late";
  readonly lateMs?: number;
  /** Waits before it answers. */
  readonly delayMs?: number;
  /** Answers 202, and goes on with it. */
  readonly slow?: SlowOperation;
  /** Instead of the answer that a good broker gives. */
  readonly status?: number;
  readonly headers?: { readonly [name: string]: string };
  readonly body?: Json;
  /** The body as it is to be sent, which may be no JSON. */
  readonly text?: string;
  /** Spaces after the body until it has so many bytes. */
  readonly padTo?: number;
  /** Sends this instead of an answer in HTTP. */
  readonly raw?: string;
  /** Reads so many bytes of the request, with its head, and resets the connection. */
  readonly requestBytes?: number;
  /** Sends so many bytes of the answer, with its head; below zero: all but so many. */
  readonly answerBytes?: number;
  /** What comes after `answerBytes`. Default `reset`. */
  readonly ending?: "reset" | "close" | "hang";
  /** Sends the answer byte by byte, with so many milliseconds in between. */
  readonly byteMs?: number;
}

/** An operation that goes on after its 202. It ends after `polls` polls (default 1), or after `ms`, whoever polls or not. */
export interface SlowOperation {
  readonly polls?: number | "endless";
  readonly ms?: number;
  readonly end?: "succeeded" | "failed";
  /** The key in the 202: none, one of 10,001 characters, a number. Default: one as it should be. */
  readonly key?: "none" | "too-long" | "number";
  /** Told with a failed end. */
  readonly usable?: boolean;
  readonly repeatable?: boolean;
  readonly description?: string;
  /** How polls of it are answered. */
  readonly polled?: Omit<Misbehaviour, "slow">;
}

/** What was written is no misbehaviour. The message says where and why. */
export class MisbehaviourError extends Error {
  override readonly name = "MisbehaviourError";
}

/** Reads what a user wrote. Throws a MisbehaviourError. */
export function parseMisbehaviour(value: unknown, path: string): Misbehaviour {
  return parseFields<Misbehaviour>(value, path, misbehaviourFields);
}

type Check = (value: unknown, path: string) => string | undefined;

const longestWaitMs = 3_600_000;
const largestBody = 256 * 1024 * 1024;

const wholeNumber =
  (least: number, most: number): Check =>
  (value) =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= most
      ? undefined
      : `must be a whole number from ${least} to ${most}`;
const oneOf =
  (...words: readonly unknown[]): Check =>
  (value) =>
    words.includes(value) ? undefined : `must be one of ${words.map((word) => JSON.stringify(word)).join(", ")}`;
const text: Check = (value) => (typeof value === "string" ? undefined : "must be a text");
const boolean: Check = oneOf(true, false);
const milliseconds = wholeNumber(0, longestWaitMs);
const headers: Check = (value) =>
  isJsonObject(value) &&
  Object.entries(value).every(([name, one]) => /^[\w-]+$/.test(name) && typeof one === "string" && !/[\r\n]/.test(one))
    ? undefined
    : "must be an object of names and texts, each of one line";

const slowFields: Readonly<Record<keyof SlowOperation, Check>> = {
  polls: (value, path) => (value === "endless" ? undefined : wholeNumber(0, 1_000_000)(value, path)),
  ms: milliseconds,
  end: oneOf("succeeded", "failed"),
  key: oneOf("none", "too-long", "number"),
  usable: boolean,
  repeatable: boolean,
  description: text,
  polled: (value, path) => {
    const { slow, ...others } = misbehaviourFields;
    parseFields(value, path, others);
    return undefined;
  },
};

const misbehaviourFields: Readonly<Record<keyof Misbehaviour, Check>> = {
  effect: oneOf("done", "none", "late"),
  lateMs: milliseconds,
  delayMs: milliseconds,
  slow: (value, path) => {
    parseFields(value, path, slowFields);
    return undefined;
  },
  status: wholeNumber(200, 999),
  headers,
  body: () => undefined,
  text,
  padTo: wholeNumber(0, largestBody),
  raw: text,
  requestBytes: wholeNumber(0, largestBody),
  answerBytes: wholeNumber(-largestBody, largestBody),
  ending: oneOf("reset", "close", "hang"),
  byteMs: milliseconds,
};

function parseFields<Fields extends object>(
  value: unknown,
  path: string,
  checks: Readonly<Record<string, Check>>,
): Fields {
  if (!isJsonObject(value)) throw new MisbehaviourError(`${path} must be an object`);
  for (const [name, one] of Object.entries(value)) {
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (check === undefined)
      throw new MisbehaviourError(`${path}.${name} is not known; known are ${Object.keys(checks).join(", ")}`);
    const fault = check(one, `${path}.${name}`);
    if (fault !== undefined) throw new MisbehaviourError(`${path}.${name} ${fault}`);
  }
  return value as Fields;
}

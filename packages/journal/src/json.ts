import { JournalError } from "./errors.js";

/** What can be kept: plain JSON. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/**
 * What comes back of a value that was written as JSON: a `Date` as a text, `undefined` as `null`, what has a `toJSON` as what that gives.
 * Of what TypeScript does not know (`unknown`) some JSON comes back.
 */
export type Jsonified<T> = unknown extends T
  ? IfAny<T, T, Json>
  : [T] extends [never]
    ? T
    : [T] extends [undefined]
      ? null
      : [T] extends [Nothing]
        ? T
        : JsonifiedValue<T>;

type JsonifiedValue<T> = T extends Json
  ? T
  : T extends Nothing
    ? null
    : T extends { toJSON(): infer Told }
      ? Jsonified<Told>
      : T extends readonly unknown[]
        ? { [Index in keyof T]: Jsonified<T[Index]> }
        : T extends object
          ? { [Name in keyof T as Name extends symbol ? never : Name]: JsonifiedMember<T[Name]> }
          : never;

/** What is `undefined` inside of an object is missing when it comes back. */
type JsonifiedMember<T> = undefined extends T ? Jsonified<Exclude<T, undefined>> | undefined : Jsonified<T>;

/**
 * Joined to the type of a function, it lets through only one whose result JSON can keep. No `bigint`, symbol or function, also not
 * deep inside, and so nothing with methods: a `Map` or a `Response` would come back as `{}`.
 */
export type ReturnsJson<T> = [T] extends [Jsonable<T>] ? unknown : NotJson;

/** What is not assignable to this cannot be kept. A mapped type and no union of all that is wrong, so that it bears types that refer to themselves. */
type Jsonable<T> = unknown extends T
  ? T
  : T extends Json | Nothing
    ? T
    : T extends bigint | symbol | AnyFunction | Error
      ? NotJson
      : T extends { toJSON(): infer Told }
        ? [Told] extends [Jsonable<Told>]
          ? T
          : NotJson
        : { [Name in keyof T]: Name extends symbol | "toJSON" ? T[Name] : Jsonable<T[Name]> };

/** Its one member is there to be read in the compiler's message. */
interface NotJson {
  readonly "is kept as JSON, and JSON cannot keep functions, bigint, symbols, errors or objects with methods": never;
}

// biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing has this type.
type Nothing = undefined | void;
type AnyFunction = (...args: never[]) => unknown;
type IfAny<T, Then, Else> = 0 extends 1 & T ? Then : Else;

/**
 * The JSON text of a value, or a clear error that names what could not be kept.
 * `undefined` counts as `null`, so that a step without a result can be recorded.
 */
export function toJsonText(value: unknown, limitBytes: number, what: string): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value === undefined ? null : value);
  } catch (cause) {
    throw new JournalError("not-serialisable", `${what} cannot be written as JSON: ${firstLine(cause)}`, { cause });
  }
  if (text === undefined) {
    throw new JournalError("not-serialisable", `${what} cannot be written as JSON: it is a ${typeof value}`);
  }
  // A text has at most three bytes of UTF-8 for each of its code units: most texts need no count.
  if (text.length * 3 > limitBytes && Buffer.byteLength(text) > limitBytes) {
    throw new JournalError(
      "too-large",
      `${what} is ${Buffer.byteLength(text)} bytes of JSON; at most ${limitBytes} are kept. Keep large results elsewhere and record where they are`,
    );
  }
  return text;
}

/** Inside of something larger JSON leaves out what it cannot write; a value that matters must not vanish like that. */
export function checkJsonType(value: unknown, what: string): void {
  if (typeof value === "function" || typeof value === "symbol") {
    throw new JournalError("not-serialisable", `${what} cannot be written as JSON: it is a ${typeof value}`);
  }
}

function firstLine(cause: unknown): string {
  const text = cause instanceof Error ? cause.message : String(cause);
  return text.split("\n", 1)[0] ?? "";
}

import { JournalError } from "./errors.js";

/** What can be kept: plain JSON. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

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

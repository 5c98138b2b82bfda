import type { CreateInput, UpdateInput } from "../records/instance-record.js";
import type { PreflightFinding } from "../records/preflight-report.js";
import { membersOf } from "./project.js";

/**
 * All parameters of an instance are one text in its record, of which the journal keeps 1 MiB of JSON: there each quote is escaped once more. The
 * largest text of one request is just below this; the rest is for failures, holds and all else that is kept of an instance, so that nothing
 * that ends, or is deleted, ever finds no room.
 */
export const mostKeptBytes = 600_000;

/** What is open on the desk of one request, or applied. */
export interface KeptParameters {
  readonly applied: string | null;
  /** Of what is open: creates and updates. */
  readonly open: readonly (string | null)[];
}

/**
 * Why an instance has no room for more parameters. Of each name the longest value counts that it has or may get: what would make it shorter may
 * fail or be cancelled, and what is behind it goes on. What makes nothing longer is always taken.
 */
export function lookAtRoom({ applied, open }: KeptParameters, wanted: string | null): readonly PreflightFinding[] {
  const present = [applied, ...open];
  if (wanted === null || lengthOf([...present, wanted]) * mostBytesOfUnit <= mostKeptBytes) return [];
  const bytes = longestBytes([...present, wanted]);
  if (bytes <= mostKeptBytes || bytes <= longestBytes(present)) return [];
  const message = `all parameters of an instance together, with those that are queued, have at most ${mostKeptBytes} bytes as JSON; it would be ${bytes}`;
  return [{ severity: "error", rule: "parameters-too-large", path: "/parameters", message }];
}

/** The parameters that an open operation brings. */
export function broughtBy(kind: string, input: unknown): string | null {
  if (kind === "create") return (input as CreateInput).parameters;
  return kind === "update" ? (input as UpdateInput).text.parameters : null;
}

/** Half of a surrogate pair is kept as six characters. */
const mostBytesOfUnit = 6;

function lengthOf(texts: readonly (string | null)[]): number {
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
}

function longestBytes(texts: readonly (string | null)[]): number {
  const longest = new Map<string, number>();
  for (const text of texts)
    for (const [name, value] of text === null ? [] : membersOf(text))
      longest.set(name, Math.max(longest.get(name) ?? 0, bytesOf(`${JSON.stringify(name)}:${value},`)));
  return [...longest.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/** As a text within JSON, without the quotes around it. */
function bytesOf(text: string): number {
  return new TextEncoder().encode(JSON.stringify(text)).length - 2;
}

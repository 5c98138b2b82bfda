import { JournalError, Permanent, RetryLater } from "../errors.js";
import { type Json, toJsonText } from "../json.js";
import { limits } from "../limits.js";
import type { Failure, OpenOperation } from "../operation.js";
import { type Backoff, nextDelayMs } from "./backoff.js";

/** What follows from an attempt that threw. The class of the error is the decision. */
export type RetryDecision =
  | { readonly kind: "fail"; readonly error: Failure }
  | { readonly kind: "wait"; readonly afterMs: number; readonly reason: string }
  | { readonly kind: "retry"; readonly afterMs: number; readonly error: string };

const longestMessage = 2_000;

/** Said of what is thrown and cannot be looked at. */
export const unshowable = "threw something that cannot be shown";

/** Whether an attempt that threw is tried again, goes on later, or was the last. */
export function decideRetry(
  error: unknown,
  operation: OpenOperation,
  rules: { readonly backoff?: Backoff; readonly maxAttempts?: number },
  random: () => number,
): RetryDecision {
  if (error instanceof Permanent) {
    return { kind: "fail", error: { message: messageOf(error), class: "permanent", ...keepable(error.details) } };
  }
  if (error instanceof RetryLater) return { kind: "wait", afterMs: waitOf(error), reason: messageOf(error) };
  // Trying again would give the same result, which could not be kept again.
  if (error instanceof JournalError && unkeepable.has(error.code)) {
    return { kind: "fail", error: { message: messageOf(error), class: "unkeepable" } };
  }
  if (rules.maxAttempts !== undefined && operation.failures + 1 >= rules.maxAttempts) {
    const message = `given up after ${operation.failures + 1} failed attempts in a row: ${messageOf(error)}`;
    return { kind: "fail", error: { message, class: "exhausted" } };
  }
  return {
    kind: "retry",
    afterMs: nextDelayMs(operation.failures + 1, random, rules.backoff),
    error: messageOf(error),
  };
}

/** A sentence of whatever was thrown; anything can be. */
export function messageOf(thrown: unknown): string {
  let text: unknown;
  try {
    text =
      thrown instanceof Error
        ? thrown.message || thrown.name
        : `threw ${JSON.stringify(thrown) ?? String(thrown)}, which is not an Error`;
    // What an Error's message is, is up to who made it.
    if (typeof text !== "string") text = String(text);
  } catch {
    text = unshowable;
  }
  const said = text as string;
  return said.length > longestMessage ? `${said.slice(0, longestMessage - 1)}…` : said;
}

const unkeepable: ReadonlySet<string> = new Set([
  ...["not-serialisable", "too-large", "step-repeated", "invalid-change", "invalid-key"],
]);

function waitOf({ afterMs }: RetryLater): number {
  const { shortestPauseMs, longestMs } = limits;
  return Number.isFinite(afterMs)
    ? Math.min(longestMs, Math.max(shortestPauseMs, Math.ceil(afterMs)))
    : shortestPauseMs;
}

function keepable(details: unknown): { details?: Json } {
  if (details === undefined) return {};
  try {
    return { details: JSON.parse(toJsonText(details, 65_536, "details")) as Json };
  } catch {
    return {};
  }
}

import type { Verb } from "./verb.js";

/**
 * Whether a verb is answered before it is done. `prefer`: asynchronously if the platform accepts that. `require`: only so, else 422
 * AsyncRequired. `never`: the platform waits.
 */
export type AsyncMode = "prefer" | "require" | "never";

/** How a verb is answered. */
export interface AsyncRule {
  /** Whether the platform may be answered before it is done. */
  readonly mode: AsyncMode;
  /** Wait so long for the end before answering with 202: what is quick is answered at once. */
  readonly answerWithinMs?: number;
}

/** By verb; what is not named is as the next wider rule says: plan, service, broker. */
export type AsyncRules = Readonly<Partial<Record<Verb, AsyncMode | AsyncRule>>>;

export function asyncRule(verb: Verb, ...rules: readonly (AsyncRules | undefined)[]): AsyncRule {
  for (const from of rules) {
    const rule = from?.[verb];
    if (rule !== undefined) return typeof rule === "string" ? { mode: rule } : rule;
  }
  return preferred;
}

const preferred: AsyncRule = { mode: "prefer" };

import { JournalError } from "../errors.js";
import type { Json } from "../json.js";
import type { LaneRule } from "./lane-shares.js";

/** Lanes with a rule of their own. */
const mostRules = 1_000;

export function checkRule({ limit }: Partial<LaneRule>): void {
  if (limit === undefined || limit === null || (Number.isSafeInteger(limit) && limit >= 0)) return;
  throw new JournalError("invalid-change", `the limit of a lane must be a whole number or null, not ${limit}`);
}

export function withRule(before: readonly LaneRule[], lane: string, rule: Partial<LaneRule>): readonly LaneRule[] {
  const known = before.find((other) => other.lane === lane);
  const changed: LaneRule = { paused: false, limit: null, ...known, ...rule, lane };
  const others = before.filter((other) => other.lane !== lane);
  const after = changed.paused || changed.limit !== null ? [...others, changed] : others;
  if (after.length > mostRules)
    throw new JournalError("too-large", `at most ${mostRules} lanes have rules of their own`);
  return after;
}

export function ruleEntry(
  lane: string,
  { paused, limit }: Partial<LaneRule>,
): { readonly kind: string; readonly payload: Json } {
  const payload = { lane, ...(paused !== undefined && { paused }), ...(limit !== undefined && { limit }) };
  return { kind: "lane", payload };
}

import { fingerprint } from "../identity/service-id.js";
import type { Observation } from "./observation.js";
import type { HeldRemoval, SourceData } from "./records.js";
import type { Rules } from "./rules.js";

/** A spec that was active and that a reading lacks. */
export interface Removal {
  readonly spec: string;
  readonly reason: string;
}

/**
 * What becomes of the removals of a run (F5-17). `go`: they are done, and nothing is held from now on. `held`: none is. `released` says what
 * let a removal go that was held: a person, or time.
 */
export type GuardRuling =
  | { readonly kind: "go"; readonly released: "confirmed" | "repeated" | null }
  | { readonly kind: "held"; readonly guard: HeldRemoval; readonly tripped: boolean };

/** Specs that a held removal names for a person. */
const namedSpecs = 100;

/**
 * A wrong organisation, a lost volume, an expired token and a typo all look like a mass removal: so one is held until a person confirms it,
 * or, where that is allowed, until it has been seen often enough for long enough. One that is not the same as before is a new one.
 */
export function guardRemovals(
  removals: readonly Removal[],
  active: number,
  data: Pick<SourceData, "generation" | "guard">,
  { id, completeness }: Pick<Observation, "id" | "completeness">,
  { guard: rules }: Pick<Rules, "guard">,
  now: number,
): GuardRuling {
  if (!isMass(removals.length, active, rules)) return { kind: "go", released: null };
  const specs = removals.map(({ spec }) => spec).sort();
  const reasons = [...new Set(removals.map(({ reason }) => reason))].sort();
  const same = fingerprint([data.generation, reasons, specs]);
  const before = data.guard;
  if (before?.confirmed && (before.fingerprint === same || isWithin(specs, before)))
    return { kind: "go", released: "confirmed" };
  const counts = completeness === "complete" ? 1 : 0;
  if (before === null || before.fingerprint !== same) {
    const guard = { observation: id, fingerprint: same, count: specs.length, of: active, since: now, confirmed: null };
    return { kind: "held", guard: { ...guard, specs: specs.slice(0, namedSpecs), times: counts }, tripped: true };
  }
  const guard = { ...before, times: before.times + counts };
  const believed = rules.autoConfirm === "always" || (rules.autoConfirm === "unless all" && removals.length < active);
  if (believed && guard.times >= rules.confirmRuns && now - guard.since >= rules.confirmMs)
    return { kind: "go", released: "repeated" };
  return { kind: "held", guard, tripped: false };
}

function isMass(removed: number, active: number, { least, share }: Rules["guard"]): boolean {
  return removed > Math.max(least, share * active) || (removed === active && active >= 2);
}

/** Who confirmed ten has confirmed nine of them. Of more than are named, nobody knows. */
function isWithin(specs: readonly string[], { count, specs: named }: HeldRemoval): boolean {
  return count === named.length && specs.every((spec) => named.includes(spec));
}

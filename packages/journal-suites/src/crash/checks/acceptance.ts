import type { Story } from "./evidence.js";
import type { Violation } from "./violation.js";

/** J1: what was acknowledged is there, what was refused is not, and what was asked twice is there once. */
export function acceptanceViolations(stories: readonly Story[]): readonly Violation[] {
  const found: Violation[] = [];
  for (const { script, acknowledged, refused, ends, ids, resource, attempts, effects } of stories) {
    if (refused) {
      if (acknowledged || ids.size + attempts.length > 0 || ends !== undefined)
        found.push({ kind: "refused, then happened", story: `operation ${script.n} of ${script.key}` });
      continue;
    }
    // A resource of which nothing is left goes with its history: then all that it was to do must have been seen.
    const allSeen = script.steps.every(({ name }) =>
      effects.some(({ step, endAt }) => step === name && endAt !== null),
    );
    const mayBeGone = script.leaves && resource === undefined && allSeen;
    if (!acknowledged)
      found.push({ kind: "never answered", story: `the request for operation ${script.n} of ${script.key}` });
    if (acknowledged && ends === undefined && !mayBeGone)
      found.push({ kind: "accepted, then missing", story: `operation ${script.n} of ${script.key}` });
    // Nobody can tell a repeat from a new request once the resource is gone.
    if (ids.size > 1 && !script.leaves)
      found.push({
        kind: "accepted twice",
        story: `operation ${script.n} of ${script.key} is ${[...ids].join(" and ")}`,
      });
  }
  return found;
}

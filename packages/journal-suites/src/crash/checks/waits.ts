import type { Story } from "./evidence.js";
import type { Violation } from "./violation.js";

/** A process knows the store's clock from answers that have travelled: it may be behind by as much. */
const toleranceMs = 200;

/** J6: however often the process was killed meanwhile, a wait is not over before its time. */
export function waitViolations(stories: readonly Story[]): readonly Violation[] {
  const found: Violation[] = [];
  for (const { script, waits, ids } of stories) {
    if (script.leaves && ids.size > 1) continue;
    for (const over of waits) {
      if (over.kind !== "wait over") continue;
      const begun = waits.find((event) => event.kind === "wait begins" && event.wait === over.wait);
      if (begun?.kind !== "wait begins") continue;
      const early = begun.at + begun.ms - over.at;
      if (early > toleranceMs)
        found.push({
          kind: "woke too early",
          story: `operation ${script.n} of ${script.key}, ${over.wait}: by ${early.toFixed(0)} of ${begun.ms} ms`,
        });
    }
  }
  return found;
}

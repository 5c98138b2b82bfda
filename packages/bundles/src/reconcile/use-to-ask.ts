import type { Observation } from "./observation.js";
import type { StoredSource } from "./records.js";
import type { Rules } from "./rules.js";

/** Of which services and plans has to be known whether they have instances before a reading is taken in. Mostly of none. */
export function useToAsk(
  { data, specs }: StoredSource,
  observation: Observation,
  { deleteAfterFailures }: Rules,
): { readonly services: readonly string[]; readonly plans: readonly string[] } {
  const plans: string[] = [];
  observation.refs.forEach(({ seen }, id) => {
    if (seen.kind !== "read") return;
    const known = specs.get(id);
    if (known?.kind !== "service" || known.current.digest === seen.revision.digest) return;
    plans.push(...known.current.plans.map((plan) => plan.id));
  });
  const failures = data.health.consecutiveFailures + 1;
  const reached = deleteAfterFailures !== null && failures >= deleteAfterFailures;
  if (observation.completeness !== "failed" || !reached) return { services: [], plans };
  const offered = [...specs.values()].flatMap((spec) =>
    spec.kind === "service" && spec.state.kind !== "retired" ? [spec.serviceId] : [],
  );
  return { services: offered, plans };
}

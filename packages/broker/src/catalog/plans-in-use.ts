import type { Journal } from "@osbert/journal";
import type { BrokerCatalog } from "./catalog.js";

/** A plan that has instances and would not be offered any more. */
export interface PlanInUse {
  /** The service's name. */
  readonly service: string;
  /** The plan's name. */
  readonly plan: string;
  /** The plan's id. */
  readonly id: string;
  /** A plan of the same names would have this id instead. */
  readonly newId: string | null;
}

/** Thrown where a change of the catalog would drop plans that have instances. Nothing was changed. */
export class PlansInUseError extends Error {
  override readonly name = "PlansInUseError";
  /** All of them. */
  readonly plans: readonly PlanInUse[];

  constructor(plans: readonly PlanInUse[]) {
    super(
      `the catalog was not changed, because there are instances of plans that it lacks:\n${plans.map(line).join("\n")}`,
    );
    this.plans = plans;
  }
}

/** The plans that only the present catalog has. Pure. */
export function droppedPlans(present: BrokerCatalog, next: BrokerCatalog): readonly PlanInUse[] {
  const offered = [...next.services.values()];
  return [...present.services.values()].flatMap(({ offering, plans }) =>
    [...plans.values()].flatMap(({ plan }) => {
      if (next.services.get(offering.id)?.plans.has(plan.id)) return [];
      const namesake = offered
        .find((candidate) => candidate.offering.name === offering.name)
        ?.offering.plans.find((candidate) => candidate.name === plan.name);
      return [{ service: offering.name, plan: plan.name, id: plan.id, newId: namesake?.id ?? null }];
    }),
  );
}

/** Those of them that have instances. One indexed look a plan. */
export async function inUse(journal: Journal, plans: readonly PlanInUse[]): Promise<readonly PlanInUse[]> {
  const found = await Promise.all(
    plans.map(({ id }) => journal.find({ label: { name: "plan", value: id }, limit: 1 })),
  );
  // One that cannot be read is no item, but there is a next page behind it; it is an instance all the same.
  return plans.filter((_, index) => found[index]?.items.length !== 0 || found[index]?.next !== null);
}

function line({ service, plan, id, newId }: PlanInUse): string {
  const how = newId === null || newId === id ? "is gone" : `has another id, ${newId}`;
  return `  plan ${plan} of ${service} (${id}) ${how}`;
}

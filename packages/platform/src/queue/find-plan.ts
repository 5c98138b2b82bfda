import { PlatformError } from "../errors.js";
import type { OfferedService } from "../platform.js";
import type { PlanRef } from "../records/instance-record.js";

export interface FoundPlan {
  readonly broker: string;
  readonly offering: PlanRef;
  readonly plan: PlanRef;
  readonly maintenance: string | null;
}

/** What a user means by the names, or ids, of an offering and a plan. What left the catalog is meant only where nothing else is. */
export function findPlan(
  offered: readonly OfferedService[],
  wanted: { readonly broker?: string; readonly offering: string; readonly plan: string },
): FoundPlan {
  const named = offered.filter(
    ({ broker, offering }) =>
      (wanted.broker === undefined || wanted.broker === broker) &&
      (offering.id === wanted.offering || offering.name === wanted.offering),
  );
  const present = named.filter(({ leftAt }) => leftAt === null);
  const [found, another] = present.length > 0 ? present : named;
  if (found === undefined) throw new PlatformError("not-found", `nobody offers ${wanted.offering}`);
  if (another !== undefined)
    throw new PlatformError("invalid", `several brokers offer ${wanted.offering}; say which one is meant`, {
      details: { brokers: present.map(({ broker }) => broker) },
    });
  const { broker, offering } = found;
  const plan =
    offering.plans.find(({ id }) => id === wanted.plan) ?? offering.plans.find(({ name }) => name === wanted.plan);
  if (plan === undefined) throw new PlatformError("not-found", `${offering.name} has no plan ${wanted.plan}`);
  return {
    broker,
    offering: { id: offering.id, name: offering.name },
    plan: { id: plan.id, name: plan.name },
    maintenance: plan.maintenance_info?.version ?? null,
  };
}

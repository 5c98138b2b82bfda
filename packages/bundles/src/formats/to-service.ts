import type { AsyncMode, PlanDefinition, ServiceDefinition } from "@osbert/broker";
import { actions, type BundleSpec, type PlanSpec } from "./bundle-spec.js";

/** What a revision of a bundle is called in the catalog. */
export interface ServiceNaming {
  readonly id: string;
  /** The bundle's, or another one where that is taken (F5-60). */
  readonly name: string;
  /** Ids of the plans, by name. One without an id is not offered. */
  readonly plans: readonly { readonly id: string; readonly name: string }[];
  /** As instances are pinned to it. */
  readonly revision: string;
  /** As in `maintenance_info` (F5-30 to 33). */
  readonly version: string;
  /** Plans of earlier revisions that have instances and are to be seen, marked as deprecated (F5-40). */
  readonly retired?: readonly { readonly id: string; readonly plan: PlanSpec }[];
}

/** All of a service but its functions. */
export type ServiceFacts = Required<
  Pick<
    ServiceDefinition,
    "id" | "name" | "description" | "tags" | "bindable" | "planUpdateable" | "metadata" | "async" | "revision"
  >
> & {
  readonly plans: Readonly<Record<string, PlanDefinition>>;
};

/** A bundle as a service of a broker. Pure; nothing is left to defaults that platforms read differently (F5-81). */
export function toService(spec: BundleSpec, naming: ServiceNaming): ServiceFacts {
  const { retired = [] } = naming;
  const ids = new Map(naming.plans.map(({ id, name }) => [name, id]));
  const offered = spec.plans.flatMap((plan) => {
    const id = ids.get(plan.name);
    return id === undefined ? [] : [[plan.name, toPlan(plan, id, naming.version)] as const];
  });
  const names = new Set(offered.map(([name]) => name));
  const kept = retired
    .filter(({ plan }) => !names.has(plan.name))
    .map(({ id, plan }) => {
      const { maintenanceInfo: _, ...shown } = toPlan(plan, id, naming.version);
      return [plan.name, { ...shown, metadata: { ...plan.metadata, deprecated: true } }] as const;
    });
  return {
    id: naming.id,
    name: naming.name,
    description: spec.description,
    tags: spec.tags,
    // Its plans have what the bundle says for all of them; a service with no plan that can be bound cannot be, either.
    bindable: spec.plans.some(({ bindable }) => bindable),
    planUpdateable: spec.plans.some(({ updatesTo }) => updatesTo.length > 0),
    metadata: spec.metadata,
    async: asyncOf[spec.async],
    revision: naming.revision,
    plans: Object.fromEntries([...offered, ...kept]),
  };
}

function toPlan(plan: PlanSpec, id: string, version: string): PlanDefinition {
  const { provision, update, bind } = plan.schemas;
  return {
    id,
    description: plan.description,
    free: plan.free,
    bindable: plan.bindable,
    planUpdateable: plan.updatesTo.length > 0,
    metadata: plan.metadata,
    maintenanceInfo: { version },
    ...(provision !== null && { provision }),
    ...(update !== null && { update }),
    ...(bind !== null && { bind }),
  };
}

/** One for all services of a mode: there are thousands. */
const asyncOf = {
  optional: everyAction("prefer"),
  required: everyAction("require"),
  unsupported: everyAction("never"),
} satisfies Record<BundleSpec["async"], ServiceFacts["async"]>;

function everyAction(mode: AsyncMode): ServiceFacts["async"] {
  return Object.freeze(Object.fromEntries(actions.map((action) => [action, mode])));
}

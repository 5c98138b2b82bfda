import type { PlanDefinition, Service } from "@osbert/broker";
import type { Fault } from "../settings/fault.js";
import { didYouMean } from "../settings/suggest.js";
import type { Settings } from "../settings/table.js";
import type { Place } from "../settings/written.js";

type ServiceSettings = Settings["catalog"]["services"] extends ReadonlyMap<string, infer S> ? S : never;
type PlanSettings = ServiceSettings["plans"] extends ReadonlyMap<string, infer P> ? P : never;

export interface Overlaid {
  readonly services: readonly Service[];
  readonly faults: readonly Fault[];
}

/** Lays what the operator says over what the code says, by the names of services and plans. The code's services stay as they are. */
export function overlay(
  services: readonly Service[],
  catalog: Settings["catalog"],
  places: ReadonlyMap<string, Place>,
): Overlaid {
  const faults: Fault[] = [];
  const check = (key: string, given: Iterable<string>, known: readonly string[], what: string) => {
    for (const name of given) {
      if (known.includes(name)) continue;
      const near = didYouMean(name, known) || `; it has ${known.join(", ") || "none"}`;
      const place = places.get(`${key}.${name}`) ?? { kind: "default" };
      faults.push({ place, key: `${key}.${name}`, message: `the module has no ${what} of this name${near}` });
    }
  };
  const names = services.map(({ name }) => name);
  check("catalog.services", catalog.services.keys(), names, "service");
  for (const service of services) {
    const plans = catalog.services.get(service.name)?.plans.keys() ?? [];
    check(`catalog.services.${service.name}.plans`, plans, Object.keys(service.plans ?? {}), "plan");
  }
  const overlaid = services.map((service) => {
    const settings = catalog.services.get(service.name);
    return settings === undefined ? service : overlayService(service, settings);
  });
  return { services: overlaid, faults };
}

/** Every property that a service can have, and whether it is a function: the compiler sees to it that none is forgotten. */
const properties: Readonly<Record<keyof Service, "fact" | "function">> = {
  id: "fact",
  name: "fact",
  description: "fact",
  tags: "fact",
  requires: "fact",
  bindable: "fact",
  instancesRetrievable: "fact",
  bindingsRetrievable: "fact",
  allowContextUpdates: "fact",
  planUpdateable: "fact",
  metadata: "fact",
  dashboardClient: "fact",
  plans: "fact",
  state: "fact",
  bindingState: "fact",
  async: "fact",
  deadlineMs: "fact",
  hooks: "fact",
  prepare: "function",
  prepareUpdate: "function",
  provision: "function",
  update: "function",
  deprovision: "function",
  bind: "function",
  unbind: "function",
};

/**
 * A copy of its own. A service may be an instance of a class: its functions are called on the original, so that they find their
 * private fields.
 */
function copyOf(service: Service): Service {
  const entries = Object.entries(properties).flatMap(([name, kind]) => {
    const value: unknown = service[name as keyof Service];
    if (value === undefined) return [];
    return [[name, kind === "function" && typeof value === "function" ? value.bind(service) : value] as const];
  });
  return Object.fromEntries(entries) as unknown as Service;
}

function overlayService(service: Service, settings: ServiceSettings): Service {
  const { displayName, image, longDescription, providerDisplayName, documentationUrl, supportUrl } = settings;
  const { id, description, tags, bindable, planUpdateable } = settings;
  const { instancesRetrievable, bindingsRetrievable, allowContextUpdates, dashboardClient: client } = settings;
  const metadata = {
    ...service.metadata,
    ...settings.metadata,
    ...given({ displayName, longDescription, providerDisplayName, documentationUrl, supportUrl }),
    ...given({ imageUrl: image?.dataUri }),
  };
  const dashboardClient = client && {
    id: client.id,
    secret: client.secret.reveal(),
    ...given({ redirect_uri: client.redirectUri }),
  };
  return {
    ...copyOf(service),
    ...given({ id, description, tags, bindable, planUpdateable, dashboardClient }),
    ...given({ instancesRetrievable, bindingsRetrievable, allowContextUpdates }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    plans: overlayPlans((service.plans ?? {}) as Readonly<Record<string, PlanDefinition>>, settings.plans),
  };
}

function overlayPlans(
  plans: Readonly<Record<string, PlanDefinition>>,
  settings: ReadonlyMap<string, PlanSettings>,
): Readonly<Record<string, PlanDefinition>> {
  const overlaid = Object.entries(plans).flatMap(([name, plan]) => {
    const said = settings.get(name);
    if (said === undefined) return [[name, plan] as const];
    return said.offered === false ? [] : [[name, overlayPlan(plan, said)] as const];
  });
  return Object.fromEntries(overlaid);
}

function overlayPlan(plan: PlanDefinition, settings: PlanSettings): PlanDefinition {
  const { id, description, free, bindable, planUpdateable, bindingRotatable, maximumPollingDuration } = settings;
  const { displayName, bullets, maintenanceInfo: maintenance, schemas } = settings;
  const costs = settings.costs?.map(({ amount, unit }) => ({ amount: Object.fromEntries(amount), unit }));
  const metadata = { ...plan.metadata, ...settings.metadata, ...given({ displayName, bullets, costs }) };
  const maintenanceInfo = maintenance && {
    version: maintenance.version,
    ...given({ description: maintenance.description }),
  };
  return {
    ...plan,
    ...given({ id, description, free, bindable, planUpdateable, bindingRotatable, maximumPollingDuration }),
    ...given({ maintenanceInfo, provision: schemas.provision, update: schemas.update, bind: schemas.bind }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  };
}

/** Only what was said. */
function given<T extends object>(values: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const said = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(said) as { [Name in keyof T]?: Exclude<T[Name], undefined> };
}

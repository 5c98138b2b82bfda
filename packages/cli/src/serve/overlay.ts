import type { PlanDefinition, Service, ServiceFunctions } from "@osbert/broker";
import { didYouMean, type Fault, type Place } from "@osbert/server/yaml";
import type { Settings } from "../settings/table.js";
import type { Exported } from "./load-module.js";

type ServiceSettings = Settings["catalog"]["services"] extends ReadonlyMap<string, infer S> ? S : never;
type PlanSettings = ServiceSettings["plans"] extends ReadonlyMap<string, infer P> ? P : never;

export interface Overlaid {
  readonly services: readonly Service[];
  readonly faults: readonly Fault[];
}

/**
 * Lays what the operator says over what the code says, by the names of services and plans, and adds the services and plans that only
 * the operator speaks of. What the module exports stays as it is.
 */
export function overlay(
  exported: readonly Exported[],
  catalog: Settings["catalog"],
  places: ReadonlyMap<string, Place>,
): Overlaid {
  const faults: Fault[] = [];
  const fault: Refuse = (key, message) => {
    faults.push({ place: nearestPlace(key, places), key, message });
    return undefined;
  };
  const names = exported.map(({ name }) => name);
  const added = [...catalog.services.keys()].filter((name) => !names.includes(name));
  const services = [...names, ...added].flatMap((name) => {
    const key = `catalog.services.${name}`;
    const settings = catalog.services.get(name);
    const own = exported.find((candidate) => candidate.name === name);
    // Functions that nothing is said of are there for other services.
    if (settings === undefined) return own !== undefined && isService(own) ? [own] : [];
    const { use } = settings;
    const base = use === undefined ? own : exported.find((candidate) => candidate.name === use);
    if (base === undefined) {
      const near = didYouMean(use ?? name, names) || `; it has ${names.join(", ") || "none"}`;
      if (use === undefined) fault(key, `the module has no service of this name, and a new one needs use${near}`);
      else fault(`${key}.use`, `the module has no service and no functions of this name${near}`);
      return [];
    }
    const from = copyOf(base, use === undefined ? ["fact", "behaviour", "function"] : ["behaviour", "function"]);
    const service = overlayService({ ...from, name }, settings, key, fault);
    return service === undefined || settings.offered === false ? [] : [service];
  });
  return { services, faults };
}

type Refuse = (key: string, message: string) => undefined;

function isService(exported: Exported): exported is Service {
  return "plans" in exported && exported.plans !== undefined;
}

/** Of what was written there or around it. */
function nearestPlace(key: string, places: ReadonlyMap<string, Place>): Place {
  const place = places.get(key);
  if (place !== undefined || !key.includes(".")) return place ?? { kind: "default" };
  return nearestPlace(key.slice(0, key.lastIndexOf(".")), places);
}

/**
 * Every property that a service can have: a function, a fact that the catalog tells of this one service, or what goes with the functions
 * wherever they are used. The compiler sees to it that none is forgotten.
 */
const properties: Readonly<Record<keyof Service, "fact" | "behaviour" | "function">> = {
  id: "fact",
  name: "fact",
  description: "fact",
  tags: "fact",
  requires: "behaviour",
  bindable: "behaviour",
  instancesRetrievable: "behaviour",
  bindingsRetrievable: "behaviour",
  allowContextUpdates: "behaviour",
  planUpdateable: "behaviour",
  metadata: "fact",
  dashboardClient: "fact",
  plans: "fact",
  state: "behaviour",
  bindingState: "behaviour",
  async: "behaviour",
  deadlineMs: "behaviour",
  hooks: "behaviour",
  prepare: "function",
  prepareUpdate: "function",
  provision: "function",
  update: "function",
  deprovision: "function",
  bind: "function",
  revision: "fact",
  unbind: "function",
};

/**
 * A copy of its own. A service may be an instance of a class: its functions are called on the original, so that they find their
 * private fields.
 */
function copyOf(exported: Exported, wanted: readonly (typeof properties)[keyof Service][]): Partial<Service> {
  const entries = Object.entries(properties).flatMap(([name, kind]) => {
    const value: unknown = exported[name as keyof ServiceFunctions];
    if (value === undefined || !wanted.includes(kind)) return [];
    return [[name, kind === "function" && typeof value === "function" ? value.bind(exported) : value] as const];
  });
  return Object.fromEntries(entries);
}

function overlayService(
  service: Partial<Service> & Pick<Service, "name">,
  settings: ServiceSettings,
  key: string,
  fault: Refuse,
): Service | undefined {
  const { displayName, image, longDescription, providerDisplayName, documentationUrl, supportUrl } = settings;
  const { tags, requires, bindable, planUpdateable } = settings;
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
  const known = (service.plans ?? {}) as Readonly<Record<string, PlanDefinition>>;
  const plans = overlayPlans(known, settings.plans, `${key}.plans`, fault);
  const isNew = service.plans === undefined;
  const id =
    settings.id ??
    service.id ??
    fault(`${key}.id`, "is missing; only the broker that offers a service can give it one");
  const description =
    settings.description ?? service.description ?? fault(`${key}.description`, "is missing; platforms show it");
  if (isNew && settings.plans.size === 0) return fault(`${key}.plans`, "is missing; write at least one plan");
  if (id === undefined || description === undefined) return undefined;
  return {
    ...service,
    id,
    description,
    ...given({ tags, requires, bindable, planUpdateable, dashboardClient }),
    ...given({ instancesRetrievable, bindingsRetrievable, allowContextUpdates }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    plans,
  };
}

/** Those of the module in its order, then those that only the operator speaks of. */
function overlayPlans(
  plans: Readonly<Record<string, PlanDefinition>>,
  settings: ReadonlyMap<string, PlanSettings>,
  key: string,
  fault: Refuse,
): Readonly<Record<string, PlanDefinition>> {
  const names = Object.keys(plans);
  const added = [...settings.keys()].filter((name) => !names.includes(name));
  const overlaid = [...names, ...added].flatMap((name) => {
    const [plan, said] = [names.includes(name) ? plans[name] : undefined, settings.get(name)];
    const { id, description } = { ...plan, ...given({ id: said?.id, description: said?.description }) };
    if (id === undefined || description === undefined) {
      const missing = [id === undefined ? ["id"] : [], description === undefined ? ["description"] : []].flat();
      const isNew = `a new one needs ${missing.join(" and ")}`;
      const near = didYouMean(name, names) || `; it has ${names.join(", ")}`;
      fault(`${key}.${name}`, names.length === 0 ? isNew : `the module has no plan of this name, and ${isNew}${near}`);
      return [];
    }
    if (said?.offered === false) return [];
    return [
      [
        name,
        said === undefined ? { ...plan, id, description } : overlayPlan({ ...plan, id, description }, said),
      ] as const,
    ];
  });
  return Object.fromEntries(overlaid);
}

function overlayPlan(plan: PlanDefinition, settings: PlanSettings): PlanDefinition {
  const { free, bindable, planUpdateable, bindingRotatable, maximumPollingDuration } = settings;
  const { displayName, bullets, maintenanceInfo: maintenance, schemas } = settings;
  const costs = settings.costs?.map(({ amount, unit }) => ({ amount: Object.fromEntries(amount), unit }));
  const metadata = { ...plan.metadata, ...settings.metadata, ...given({ displayName, bullets, costs }) };
  const maintenanceInfo = maintenance && {
    version: maintenance.version,
    ...given({ description: maintenance.description }),
  };
  return {
    ...plan,
    ...given({ free, bindable, planUpdateable, bindingRotatable, maximumPollingDuration }),
    ...given({ maintenanceInfo, provision: schemas.provision, update: schemas.update, bind: schemas.bind }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  };
}

/** Only what was said. */
function given<T extends object>(values: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const said = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(said) as { [Name in keyof T]?: Exclude<T[Name], undefined> };
}

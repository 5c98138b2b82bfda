import { hash } from "node:crypto";
import type { Finding, JsonObject } from "@osbert/protocol";
import type { Application, ApplicationService } from "./application.js";
import type { ApplicationRecord, KeptService } from "./catalog-records.js";
import { presentServices, wholeIds } from "./catalog-records.js";
import { quoted } from "./field-reader.js";

/**
 * How services of the broker are made of Kyma's applications. `services`: one of each service of an application, with one plan. `applications`: one
 * of each application, with a plan for each of its services. Applications of Osbert's own kind have one form: a service of each of theirs, with the
 * plans `events`, `api` and `all`, as far as it has events and APIs.
 */
export type CatalogMapping = "services" | "applications";

/** A service of the broker, as the catalog tells it. */
export interface ServiceOffer {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly metadata: JsonObject;
  readonly isBindable: boolean;
  /** Which mapping it was made by: instances of it go on with that, whatever is offered now. */
  readonly revision: Revision;
  readonly plans: readonly PlanOffer[];
}

export type Revision = "services-1" | "applications-1" | "own-1";

/** Of what is made of Kyma's applications now. */
export const kymaRevisions = { services: "services-1", applications: "applications-1" } as const satisfies Readonly<
  Record<CatalogMapping, Revision>
>;

export interface PlanOffer {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly metadata: JsonObject;
  readonly isBindable: boolean;
  readonly parameters: ApplicationService["parameters"];
  readonly content: PlanContent;
}

/** What an instance of a plan is of. */
export interface PlanContent {
  /** Its name. */
  readonly application: string;
  /** The id of its service. */
  readonly service: string;
  /** It gets events. */
  readonly events: boolean;
  /** It can be bound to APIs. */
  readonly apis: boolean;
}

export interface ApplicationFinding extends Finding {
  readonly application: string;
}

export interface Offer {
  /** In the order of applications, and of their services. */
  readonly services: readonly ServiceOffer[];
  readonly findings: readonly ApplicationFinding[];
}

/** What is offered of all that is kept. Pure, and the same in all processes: what was there first has the ids and names that two want. */
export function offerApplications(records: Iterable<ApplicationRecord>, mapping: CatalogMapping): Offer {
  const findings: ApplicationFinding[] = [];
  const candidates = [...records]
    .filter(({ removedAt }) => removedAt === null)
    .sort((one, other) => compareTexts(one.application.name, other.application.name))
    .flatMap((record) => candidatesOf(record, mapping, findings));
  const inOrderOfTime = [...candidates].sort((one, other) => one.since - other.since);
  const taken = { ids: new Set<string>(), names: new Set<string>() };
  const offers = new Map<Candidate, ServiceOffer>();
  for (const candidate of inOrderOfTime) {
    const offer = admit(candidate, taken, findings);
    if (offer !== undefined) offers.set(candidate, offer);
  }
  return { services: candidates.flatMap((candidate) => offers.get(candidate) ?? []), findings };
}

/** A service as it is for its instances, with all plans that it ever had as far as they are kept. `undefined`: it is not of this record. */
export function keptOffer(record: ApplicationRecord, serviceId: string, revision: string): ServiceOffer | undefined {
  const all = record.services;
  const application: Application = { ...record.application, services: all.map(({ service }) => service) };
  switch (revision) {
    case "services-1":
      return named(
        all.filter(({ service }) => service.id === serviceId).map(({ service }) => ofKymaService(application, service)),
      );
    case "own-1":
      return named(
        all.filter(({ service }) => service.id === serviceId).map(({ service }) => ofOwnService(application, service)),
      );
    case "applications-1":
      return wholeIds(record).includes(serviceId)
        ? named([ofApplication({ ...application, externalId: serviceId }, application.services)])
        : undefined;
    default:
      return undefined;
  }
}

/** Its names are valid, and no more is asked of them. */
function named([offer]: readonly ServiceOffer[]): ServiceOffer | undefined {
  if (offer === undefined) return undefined;
  const names = new Set<string>();
  const plans = offer.plans.map((plan) => ({ ...plan, name: uniqueName(validName(plan.name), plan.id, names) }));
  return { ...offer, name: validName(offer.name), plans };
}

interface Candidate {
  readonly application: string;
  readonly since: number;
  readonly offer: ServiceOffer;
}

function candidatesOf(
  record: ApplicationRecord,
  mapping: CatalogMapping,
  findings: ApplicationFinding[],
): readonly Candidate[] {
  const kept = presentServices(record);
  const application: Application = { ...record.application, services: kept.map(({ service }) => service) };
  const { name, kind, externalId } = application;
  if (kind === "kyma" && mapping === "applications") {
    if (kept.length === 0) return [];
    if (externalId !== null)
      return [{ application: name, since: record.since, offer: ofApplication(application, application.services) }];
    const message = "is missing, and the id of the service would be made of it: the application is not offered";
    findings.push({ level: "warning", application: name, path: "spec.compassMetadata.applicationId", message });
    return [];
  }
  const make = kind === "kyma" ? ofKymaService : ofOwnService;
  return kept.map(({ service, since }: KeptService) => ({
    application: name,
    since,
    offer: make(application, service),
  }));
}

/** As Kyma's application broker made it by default: ids are to the letter those that platforms know. */
function ofKymaService(application: Application, service: ApplicationService): ServiceOffer {
  const { id, apis, events } = service;
  const [api] = apis;
  const isBindable = api !== undefined;
  const accessLabel = api?.accessLabel ?? null;
  return {
    ...{ id, name: service.name, description: service.description, tags: service.tags, isBindable },
    revision: "services-1",
    metadata: {
      displayName: service.displayName,
      providerDisplayName: service.provider ?? application.provider,
      longDescription: service.longDescription ?? application.longDescription ?? service.description,
      applicationServiceId: id,
      labels: { ...service.labels, provisionOnlyOnce: "true" },
      ...(accessLabel !== null && { bindingLabels: { [accessLabel]: "true" } }),
    },
    plans: [
      {
        ...{
          id: `${id}-plan`,
          name: "default",
          description: "Default plan",
          isBindable,
          parameters: service.parameters,
        },
        metadata: { displayName: "Default" },
        content: { application: application.name, service: id, events, apis: isBindable },
      },
    ],
  };
}

/** As it made them of API packages. */
function ofApplication(application: Application, services: readonly ApplicationService[]): ServiceOffer {
  const { name, externalId, description, tags, labels } = application;
  return {
    ...{ id: externalId ?? "", name, description, tags, isBindable: true },
    revision: "applications-1",
    metadata: {
      ...applicationMetadata(application),
      labels: { ...labels, "documentation-per-plan": "true" },
    },
    plans: services.map((service) => ({
      ...{ id: service.id, name: service.name, description: service.description, parameters: service.parameters },
      isBindable: service.apis.length > 0,
      metadata: { displayName: service.displayName },
      content: { application: name, service: service.id, events: service.events, apis: service.apis.length > 0 },
    })),
  };
}

const ownPlans = [
  { name: "events", description: "Its events", events: true, apis: false },
  { name: "api", description: "Its APIs", events: false, apis: true },
  { name: "all", description: "Its events and its APIs", events: true, apis: true },
] as const;

function ofOwnService(application: Application, service: ApplicationService): ServiceOffer {
  const { id, name, description, tags, apis, events } = service;
  const hasApis = apis.length > 0;
  const plans = ownPlans.filter((plan) => (events || !plan.events) && (hasApis || !plan.apis));
  return {
    ...{ id, name, description, tags, isBindable: hasApis },
    revision: "own-1",
    metadata: {
      ...applicationMetadata(application),
      displayName: service.displayName,
      ...(service.longDescription !== null && { longDescription: service.longDescription }),
      ...(service.provider !== null && { providerDisplayName: service.provider }),
      labels: { ...application.labels, ...service.labels },
    },
    plans: plans.map((plan) => ({
      ...{ id: `${id}-${plan.name}`, name: plan.name, description: plan.description, isBindable: plan.apis },
      ...{ metadata: {}, parameters: service.parameters },
      content: { application: application.name, service: id, events: plan.events, apis: plan.apis },
    })),
  };
}

function applicationMetadata({ displayName, provider, description, longDescription }: Application) {
  return { displayName, providerDisplayName: provider, longDescription: longDescription ?? description };
}

interface Taken {
  readonly ids: Set<string>;
  readonly names: Set<string>;
}

/** What it can have of what it wants. `undefined`: nothing is left of it. */
function admit({ application, offer }: Candidate, { ids, names }: Taken, findings: ApplicationFinding[]) {
  const tell = (message: string) =>
    findings.push({ level: "warning", application, path: `services ${quoted(offer.id)}`, message });
  if (ids.has(offer.id)) return void tell("has an id that another one had before: it is left out");
  const own = new Set([offer.id]);
  const planNames = new Set<string>();
  const plans: PlanOffer[] = [];
  for (const plan of offer.plans) {
    if (ids.has(plan.id) || own.has(plan.id)) {
      tell(`would have a plan ${quoted(plan.id)}, an id that another one had before: the plan is left out`);
      continue;
    }
    own.add(plan.id);
    const name = uniqueName(validName(plan.name), plan.id, planNames);
    if (name !== plan.name) tell(`has a plan ${quoted(plan.name)}, which is called ${quoted(name)} in the catalog`);
    plans.push({ ...plan, name });
  }
  if (plans.length === 0) return void tell("has no plan: it is left out");
  for (const id of own) ids.add(id);
  const name = uniqueName(validName(offer.name), offer.id, names);
  if (name !== offer.name) tell(`is called ${quoted(name)} in the catalog, and not ${quoted(offer.name)}`);
  return { ...offer, name, plans };
}

const longestName = 100;

/** As command lines take it. Of one that is not, what can be kept of it. */
export function validName(name: string): string {
  if (name.length <= longestName && /^[A-Za-z0-9][A-Za-z0-9.-]*$/.test(name)) return name;
  const made = name
    .slice(0, 4 * longestName)
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, "-")
    .replace(/^[^a-z0-9]+/, "")
    .slice(0, longestName)
    .replace(/[^a-z0-9]+$/, "");
  return made === "" ? "service" : made;
}

/** The name, or with a bit of what its id makes, so that it does not depend on what else there is. */
function uniqueName(name: string, id: string, names: Set<string>): string {
  const digest = hash("sha256", id, "hex");
  let unique = name;
  for (let length = 5; names.has(unique); length++) unique = `${name}-${digest.slice(0, length)}`;
  names.add(unique);
  return unique;
}

function compareTexts(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

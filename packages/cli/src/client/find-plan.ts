import { type Catalog, isJsonObject, type ServiceOffering, type ServicePlan } from "@osbert/protocol";
import { CommandError } from "./exit-status.js";
import { plainText } from "./plain-text.js";

/** A plan of the catalog, with the service that it belongs to. */
export interface Offer {
  readonly service: ServiceOffering;
  readonly plan: ServicePlan;
}

/** Names or ids, as given on the command line. */
export interface Wanted {
  readonly service?: string | undefined;
  readonly plan?: string | undefined;
}

/** What of a catalog can be worked with: services and plans that have a name and an id. The rest of a broken one is left out. */
export function usableServices(catalog: Catalog): readonly ServiceOffering[] {
  if (!Array.isArray(catalog.services))
    throw new CommandError("unreachable", "the broker's catalog has no list of services; is the URL that of a broker?");
  return (catalog.services as readonly unknown[]).filter(isNamed<ServiceOffering>).map((service) => ({
    ...service,
    plans: (Array.isArray(service.plans) ? (service.plans as readonly unknown[]) : []).filter(isNamed<ServicePlan>),
  }));
}

/** The one service that is meant: by name, by id, or because it is the only one. */
export function findService(services: readonly ServiceOffering[], wanted: string | undefined): ServiceOffering {
  return theOne({
    found: wanted === undefined ? services : services.filter((service) => isCalled(service, wanted)),
    all: services,
    what: "service",
    wanted,
    describe: (service) => [service],
  });
}

/** The one plan that is meant. A plan's name is enough where only one service has a plan of that name. */
export function findPlan(services: readonly ServiceOffering[], wanted: Wanted): Offer {
  const candidates =
    wanted.service === undefined && wanted.plan !== undefined ? services : [findService(services, wanted.service)];
  const offers = candidates.flatMap((service) => service.plans.map((plan) => ({ service, plan })));
  return theOne({
    found: wanted.plan === undefined ? offers : offers.filter(({ plan }) => isCalled(plan, wanted.plan)),
    all: offers,
    what: "plan",
    wanted: wanted.plan,
    describe: ({ service, plan }) => [service, plan],
  });
}

/** What a broker is told of an instance that exists, by what the options say of it. */
export interface Ids {
  readonly serviceId: string;
  readonly planId: string;
  /** `undefined`: the catalog does not offer it any more; the instance works on. */
  readonly offer: Offer | undefined;
}

/** Like `findPlan`, of an instance that exists: it may be of what has left the catalog. Ids are then sent as they are; a name says nothing by itself. */
export function findIds(services: readonly ServiceOffering[], wanted: Wanted): Ids {
  const { service, plan } = wanted;
  if (service !== undefined && plan !== undefined && looksLikeId(plan)) {
    const known = services.find((one) => isCalled(one, service));
    if (known === undefined ? looksLikeId(service) : !known.plans.some((one) => isCalled(one, plan)))
      return { serviceId: known?.id ?? service, planId: plan, offer: undefined };
  }
  const offer = findPlan(services, wanted);
  return { serviceId: offer.service.id, planId: offer.plan.id, offer };
}

/** The same of a service alone. */
export function findServiceId(services: readonly ServiceOffering[], wanted: string | undefined): string {
  const isGone = wanted !== undefined && looksLikeId(wanted) && !services.some((one) => isCalled(one, wanted));
  return isGone ? wanted : findService(services, wanted).id;
}

/** A UUID, or the 32 digits that older brokers made; of a plan, also the id of its service with a word after it. */
function looksLikeId(text: string): boolean {
  return /^[0-9a-f]{8}(-?)([0-9a-f]{4}\1){3}[0-9a-f]{12}(-[a-z]+)?$/i.test(text);
}

function theOne<T>(search: {
  readonly found: readonly T[];
  readonly all: readonly T[];
  readonly what: "service" | "plan";
  readonly wanted: string | undefined;
  readonly describe: (item: T) => readonly { readonly name: string; readonly id: string }[];
}): T {
  const { found, all, what, wanted, describe } = search;
  const [only, second] = found;
  if (only !== undefined && second === undefined) return only;
  const problem =
    all.length === 0
      ? `the broker offers no ${what}`
      : wanted === undefined
        ? `say which ${what} you mean with --${what}`
        : found.length === 0
          ? `there is no ${what} called ${plainText(wanted, 200)}`
          : `${plainText(wanted, 200)} could be several ${what}s; give an id with --${what}${what === "plan" ? ", or --service" : ""}`;
  throw new CommandError("usage", [problem, ...listing((found.length > 1 ? found : all).map(describe))].join("\n"));
}

const mostListed = 30;

function listing(items: readonly (readonly { readonly name: string; readonly id: string }[])[]): string[] {
  const lines = items.slice(0, mostListed).map((parts) => {
    const names = parts.map(({ name }) => plainText(name, 100)).join(" / ");
    return `  ${names}  (${plainText(parts.at(-1)?.id ?? "", 100)})`;
  });
  return items.length > mostListed ? [...lines, `  and ${items.length - mostListed} more: osbert catalog`] : lines;
}

function isCalled(item: { readonly name: string; readonly id: string }, wanted: string | undefined): boolean {
  return item.name === wanted || item.id === wanted;
}

function isNamed<T extends { readonly name: string; readonly id: string }>(item: unknown): item is T {
  return isJsonObject(item) && typeof item.name === "string" && typeof item.id === "string";
}

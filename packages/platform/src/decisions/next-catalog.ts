import { type Catalog, canonicalJson, type Json, type ServiceOffering, type ServicePlan } from "@osbert/protocol";
import type { CatalogItem, CatalogPage, OfferingRecord } from "../records/broker-record.js";

/** Bounds of what is kept of one broker. */
export const catalogLimits = {
  plans: 20_000,
  /** Of an offering or a plan by itself. */
  itemBytes: 524_288,
  pageBytes: 524_288,
} as const;

export type NextCatalog =
  | { readonly kind: "same" }
  | { readonly kind: "changed"; readonly offerings: readonly OfferingRecord[] }
  | { readonly kind: "refused"; readonly fault: string };

/**
 * What is kept of a catalog when it is read again. Ids alone tell what is what (P-CAT-02): what has another id is another thing, however equal.
 * What left is marked with the time and stays, for the instances that are of it; how much of it, left-plans.ts says.
 */
export function nextCatalog(kept: readonly OfferingRecord[], { services }: Catalog, now: number): NextCatalog {
  const plans = services.reduce((sum, service) => sum + service.plans.length, 0);
  if (plans > catalogLimits.plans)
    return { kind: "refused", fault: `the catalog has ${plans} plans; at most ${catalogLimits.plans} are taken` };
  const before = new Map(kept.map((record) => [record.offering.id, record]));
  const offered = new Set(services.map(({ id }) => id));
  const present = services.map((service) => offeredNow(before.get(service.id), service, now));
  const left = kept.filter(({ offering }) => !offered.has(offering.id)).map((record) => leaving(record, now));
  const offerings = [...present, ...left];
  const large = itemsOf(offerings).find((item) => bytesOf(item) > catalogLimits.itemBytes);
  if (large !== undefined)
    return { kind: "refused", fault: `${nameOf(large)} has more than ${catalogLimits.itemBytes} bytes` };
  return textOf(offerings) === textOf(kept) ? { kind: "same" } : { kind: "changed", offerings };
}

function offeredNow(before: OfferingRecord | undefined, service: ServiceOffering, now: number): OfferingRecord {
  const { dashboard_client: _secret, ...offering } = service;
  const ids = new Set(service.plans.map(({ id }) => id));
  const gone = before?.offering.plans.filter(({ id }) => !ids.has(id)) ?? [];
  return {
    offering: { ...offering, plans: [...service.plans, ...gone] },
    leftAt: null,
    plansLeft: Object.fromEntries(gone.map(({ id }) => [id, leftBefore(before, id) ?? now])),
  };
}

/** When the plan itself left, whatever became of its offering. Its id comes from outside, and may be the name of anything. */
function leftBefore(record: OfferingRecord | undefined, plan: string): number | null {
  if (record === undefined || !Object.hasOwn(record.plansLeft, plan)) return null;
  return record.plansLeft[plan] ?? null;
}

function leaving(record: OfferingRecord, now: number): OfferingRecord {
  return record.leftAt === null ? { ...record, leftAt: now } : record;
}

/** A catalog as it is stored. */
export function catalogPages(offerings: readonly OfferingRecord[]): readonly CatalogPage[] {
  const pages: CatalogItem[][] = [[]];
  let bytes = 0;
  for (const item of itemsOf(offerings)) {
    const size = bytesOf(item);
    if (bytes > 0 && bytes + size > catalogLimits.pageBytes) {
      pages.push([]);
      bytes = 0;
    }
    pages.at(-1)?.push(item);
    bytes += size;
  }
  return pages;
}

/** And read back. */
export function offeringsIn(pages: readonly CatalogPage[]): readonly OfferingRecord[] {
  const found: {
    offering: Omit<ServiceOffering, "plans">;
    leftAt: number | null;
    plans: ServicePlan[];
    gone: [string, number][];
  }[] = [];
  for (const item of pages.flat()) {
    const last = found.at(-1);
    if (item.kind === "offering") found.push({ offering: item.offering, leftAt: item.leftAt, plans: [], gone: [] });
    else if (last !== undefined) {
      last.plans.push(item.plan);
      if (item.leftAt !== null) last.gone.push([item.plan.id, item.leftAt]);
    }
  }
  return found.map(({ offering, leftAt: left, plans, gone }) => ({
    offering: { ...offering, plans },
    leftAt: left,
    plansLeft: Object.fromEntries(gone),
  }));
}

function itemsOf(offerings: readonly OfferingRecord[]): readonly CatalogItem[] {
  return offerings.flatMap((record): readonly CatalogItem[] => {
    const { plans, ...offering } = record.offering;
    return [
      { kind: "offering", offering, leftAt: record.leftAt },
      ...plans.map((plan): CatalogItem => ({ kind: "plan", plan, leftAt: leftBefore(record, plan.id) })),
    ];
  });
}

function nameOf(item: CatalogItem): string {
  const { name } = item.kind === "plan" ? item.plan : item.offering;
  return `the ${item.kind} ${JSON.stringify(name.slice(0, 100))}`;
}

function bytesOf(item: CatalogItem): number {
  return new TextEncoder().encode(JSON.stringify(item)).length;
}

/** The order of offerings and plans is the broker's, and says something; that of fields does not. */
function textOf(offerings: readonly OfferingRecord[]): string {
  return canonicalJson(offerings as unknown as Json);
}

import type { Paging } from "@osbert/server";
import { PlatformError } from "../errors.js";
import type { Brokers, OfferedService, OfferingQuery, Platform } from "../platform.js";
import { isVisible } from "../records/visibility-record.js";
import { bodyOf } from "./views.js";

const usualPage = 100;
/** For one page: where much is offered that is not seen, a page may have few, and there is a next one. */
const mostLookedAt = 2_000;

/** What is offered, and what is seen of it. */
export interface Offers extends Pick<Brokers, "offeringsBehind" | "offeringsCalled"> {
  /** `undefined`: nothing. */
  seen(offered: OfferedService): OfferedService | undefined;
}

/** What is offered in these spaces: with the plans that are, and without offerings that have none. */
export function offeredIn(
  { brokers, visibilities }: Pick<Platform, "brokers" | "visibilities">,
  spaces: readonly string[] | "all",
): Offers {
  const rules = visibilities.list();
  const seen = (offered: OfferedService): OfferedService | undefined => {
    if (spaces === "all" || rules.length === 0) return offered;
    const { broker, offering } = offered;
    const what = { broker, offering: offering.id };
    const plans = offering.plans.filter((plan) => isVisible(rules, { ...what, plan: plan.id }, spaces));
    return plans.length === 0 ? undefined : { ...offered, offering: { ...offering, plans } };
  };
  return {
    offeringsBehind: (query) => brokers.offeringsBehind(query),
    offeringsCalled: (idOrName, broker) => brokers.offeringsCalled(idOrName, broker),
    seen,
  };
}

/** Offerings by broker and name, a page at a time: a catalog may have thousands, and no more of them are looked at than a page needs. */
export function marketplace(
  offers: Pick<Offers, "offeringsBehind" | "seen">,
  { after, limit = usualPage, ...which }: Paging & Pick<OfferingQuery, "broker" | "name">,
) {
  const items: OfferedService[] = [];
  let looked = 0;
  let last: OfferedService | undefined;
  for (const offered of offers.offeringsBehind({ ...which, ...(after !== undefined && { after: placeOf(after) }) })) {
    if (items.length === limit || looked === mostLookedAt) return pageOf(items, last);
    looked++;
    last = offered;
    const seen = offers.seen(offered);
    if (seen !== undefined) items.push(seen);
  }
  return pageOf(items, undefined);
}

function pageOf(items: readonly OfferedService[], last: OfferedService | undefined) {
  return { items: items.map(bodyOf.offeringSummary), next: last === undefined ? null : keyOf(last) };
}

/** By name or id. What is no longer in a catalog is found by those who still have it. */
export function findOffering(
  offers: Pick<Offers, "offeringsCalled" | "seen">,
  wanted: string,
  broker: string | undefined,
): OfferedService {
  const found = offers.offeringsCalled(wanted, broker).flatMap((offered) => offers.seen(offered) ?? []);
  const offered = found.filter(({ leftAt }) => leftAt === null);
  const [first, second] = offered.length > 0 ? offered : found;
  if (first === undefined) throw new PlatformError("not-found", "nobody offers that");
  if (second !== undefined)
    throw new PlatformError("invalid", "several brokers offer that; say which one with broker=", {
      details: { brokers: found.map(({ broker: name }) => name) },
    });
  return first;
}

/** The place of an offering, as a text for `after`, and the way back. */
function keyOf({ broker, offering }: OfferedService): string {
  return JSON.stringify([broker, offering.name, offering.id]);
}

function placeOf(key: string): NonNullable<OfferingQuery["after"]> {
  const [broker, name, id, ...more] = partsOf(key);
  if (typeof broker !== "string" || typeof name !== "string" || typeof id !== "string" || more.length > 0)
    throw new PlatformError("invalid", "after is the next of a page that was answered before");
  return { broker, name, id };
}

function partsOf(key: string): readonly unknown[] {
  try {
    const parts: unknown = JSON.parse(key);
    return Array.isArray(parts) ? parts : [];
  } catch {
    return [];
  }
}

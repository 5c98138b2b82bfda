import type { Paging } from "@osbert/server";
import { PlatformError } from "../errors.js";
import type { Brokers, OfferedService, Platform } from "../platform.js";
import { isVisible } from "../records/visibility-record.js";
import { bodyOf } from "./views.js";

const usualPage = 100;

export type Offers = Pick<Brokers, "offerings">;

/** What is offered in these spaces: with the plans that are, and without offerings that have none. */
export function offeredIn(
  { brokers, visibilities }: Pick<Platform, "brokers" | "visibilities">,
  spaces: readonly string[] | "all",
): Offers {
  const rules = visibilities.list();
  if (spaces === "all" || rules.length === 0) return brokers;
  const seen = ({ offering, ...offered }: OfferedService): readonly OfferedService[] => {
    const what = { broker: offered.broker, offering: offering.id };
    const plans = offering.plans.filter((plan) => isVisible(rules, { ...what, plan: plan.id }, spaces));
    return plans.length === 0 ? [] : [{ ...offered, offering: { ...offering, plans } }];
  };
  return { offerings: (broker) => brokers.offerings(broker).flatMap(seen) };
}

/** Offerings by broker and name, a page at a time: a catalog may have thousands. */
export function marketplace(
  brokers: Pick<Brokers, "offerings">,
  { broker, name, after, limit = usualPage }: Paging & { readonly broker?: string; readonly name?: string },
) {
  const all = brokers
    .offerings(broker)
    .filter(({ offering }) => name === undefined || offering.name === name)
    .map((offered) => ({ key: keyOf(offered), offered }))
    .filter(({ key }) => after === undefined || key > after)
    .sort((one, other) => (one.key < other.key ? -1 : 1));
  const items = all.slice(0, limit);
  return {
    items: items.map(({ offered }) => bodyOf.offeringSummary(offered)),
    next: all.length > limit ? (items.at(-1)?.key ?? null) : null,
  };
}

/** By name or id. What is no longer in a catalog is found by those who still have it. */
export function findOffering(
  brokers: Pick<Brokers, "offerings">,
  wanted: string,
  broker: string | undefined,
): OfferedService {
  const found = brokers.offerings(broker).filter(({ offering }) => offering.id === wanted || offering.name === wanted);
  const offered = found.filter(({ leftAt }) => leftAt === null);
  const [first, second] = offered.length > 0 ? offered : found;
  if (first === undefined) throw new PlatformError("not-found", "nobody offers that");
  if (second !== undefined)
    throw new PlatformError("invalid", "several brokers offer that; say which one with broker=", {
      details: { brokers: found.map(({ broker: name }) => name) },
    });
  return first;
}

function keyOf({ broker, offering }: OfferedService): string {
  return JSON.stringify([broker, offering.name, offering.id]);
}

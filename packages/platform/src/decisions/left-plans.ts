import type { ServicePlan } from "@osbert/protocol";
import type { OfferingRecord } from "../records/broker-record.js";

/** Bounds of what left one broker's catalog. A broker may rename all of its plans as often as it likes. */
export const leftLimits = { plans: 10_000, bytes: 8 * 1024 * 1024 } as const;

export interface LeftPlan {
  readonly plan: ServicePlan;
  readonly offering: string;
  readonly at: number;
}

/** What left, the last to leave first. */
export function leftPlans(offerings: readonly OfferingRecord[]): readonly LeftPlan[] {
  return offerings
    .flatMap((record) =>
      record.offering.plans.flatMap((plan): readonly LeftPlan[] => {
        const at = leftAt(record, plan.id);
        return at === null ? [] : [{ plan, offering: record.offering.id, at }];
      }),
    )
    .sort((one, other) => other.at - one.at);
}

/** When a plan left, if it did. Its id comes from outside, and may be the name of anything. */
export function leftAt(record: OfferingRecord | undefined, plan: string): number | null {
  if (record === undefined) return null;
  return (Object.hasOwn(record.plansLeft, plan) ? record.plansLeft[plan] : undefined) ?? record.leftAt;
}

/** Whether all that left can stay. */
export function hasRoomForLeft(offerings: readonly OfferingRecord[]): boolean {
  const left = leftPlans(offerings);
  return left.length <= leftLimits.plans && bytesOfLeft(offerings, left) <= leftLimits.bytes;
}

/**
 * What has no instances goes, all of it: the next time is far then. What has some stays, as long as there is room for it, without what only
 * those read who want to make new ones; then what left last. Instances keep themselves what they cannot be without.
 */
export function withinLeftLimits(
  offerings: readonly OfferingRecord[],
  used: ReadonlySet<string>,
): readonly OfferingRecord[] {
  const withUsed = keepLeft(offerings, ({ plan }) => used.has(plan.id));
  if (hasRoomForLeft(withUsed)) return withUsed;
  const brief = withUsed.map(briefly);
  let [plans, bytes] = [0, 0];
  return keepLeft(brief, ({ plan }) => {
    plans++;
    bytes += bytesOf(plan);
    // Half: the offerings that they are of have to have room, too, and a plan that is larger than others is not the end of all of them.
    return plans <= leftLimits.plans && bytes <= leftLimits.bytes / 2;
  }).filter((record) => record.leftAt === null || bytesOf({ ...record.offering, plans: [] }) <= largestBrief);
}

function keepLeft(offerings: readonly OfferingRecord[], stays: (left: LeftPlan) => boolean): readonly OfferingRecord[] {
  const kept = new Set<ServicePlan>(
    leftPlans(offerings)
      .filter(stays)
      .map(({ plan }) => plan),
  );
  return offerings.flatMap((record) => {
    const plans = record.offering.plans.filter((plan) => leftAt(record, plan.id) === null || kept.has(plan));
    if (record.leftAt !== null && plans.length === 0) return [];
    const ids = new Set(plans.map(({ id }) => id));
    const plansLeft = Object.fromEntries(Object.entries(record.plansLeft).filter(([id]) => ids.has(id)));
    return [{ ...record, offering: { ...record.offering, plans }, plansLeft }];
  });
}

const largestBrief = 4_096;

function briefly(record: OfferingRecord): OfferingRecord {
  const plans = record.offering.plans.map((plan) => (leftAt(record, plan.id) === null ? plan : briefPlan(plan)));
  if (record.leftAt === null) return { ...record, offering: { ...record.offering, plans } };
  const { metadata: _, tags: __, description: ___, ...offering } = record.offering;
  return { ...record, offering: { ...offering, description: "", plans } };
}

function briefPlan({ metadata: _, schemas: __, description: ___, ...plan }: ServicePlan): ServicePlan {
  return { ...plan, description: "" };
}

function bytesOfLeft(offerings: readonly OfferingRecord[], left: readonly LeftPlan[]): number {
  const ofPlans = left.reduce((sum, { plan }) => sum + bytesOf(plan), 0);
  return offerings.reduce(
    (sum, { leftAt: gone, offering }) => sum + (gone === null ? 0 : bytesOf({ ...offering, plans: [] })),
    ofPlans,
  );
}

function bytesOf(value: object): number {
  return Buffer.byteLength(JSON.stringify(value));
}

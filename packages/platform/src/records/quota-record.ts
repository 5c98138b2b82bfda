import { defineResource } from "@osbert/journal";

/**
 * How many instances, or bindings, a space may have: of all that is offered, of a broker, an offering or a plan. One that names no space holds for each
 * space on its own. All that fit must have room.
 */
export interface Quota {
  readonly name: string;
  readonly counts: "instances" | "bindings";
  readonly space: string | null;
  readonly broker: string | null;
  /** Ids. */
  readonly offering: string | null;
  readonly plan: string | null;
  readonly limit: number;
  readonly by: string;
  readonly at: number;
}

/** What counts for a quota, or would: an instance of this plan, or a binding of one. */
export interface Counted {
  /** The name of the binding. Missing: the instance itself is meant. */
  readonly binding?: string;
  readonly broker: string;
  /** Ids. */
  readonly offering: string;
  readonly plan: string;
}

export function countsFor({ counts, broker, offering, plan }: Quota, what: Counted): boolean {
  return (
    counts === (what.binding === undefined ? "instances" : "bindings") &&
    (broker === null || broker === what.broker) &&
    (offering === null || offering === what.offering) &&
    (plan === null || plan === what.plan)
  );
}

export function quotasOf(quotas: readonly Quota[], space: string): readonly Quota[] {
  return quotas.filter((quota) => quota.space === null || quota.space === space);
}

/**
 * Who is about to ask for instances or bindings in a space with quotas, in the order in which they came: only from the request to the commit that accepts
 * it, which counts from then on.
 */
export type ReservationShape = {
  data: { readonly reservations: readonly Reservation[] };
  parts: Record<never, never>;
  operations: Record<never, never>;
};

export interface Reservation extends Counted {
  readonly id: string;
  /** The name of the instance. */
  readonly instance: string;
  readonly at: number;
}

export const reservationRecords = defineResource<ReservationShape>();

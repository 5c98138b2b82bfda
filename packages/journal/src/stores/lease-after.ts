import type { Change, Lease } from "../store.js";

/** Whose a record is, and when someone looks at it next. */
export interface Tenancy {
  readonly epoch: number;
  readonly lease: Lease | null;
  readonly dueAt: number | null;
}

/**
 * Lease and due time of a record after a change (J3). A change that was long under way does not shorten a lease which its owner has renewed
 * meanwhile, for the owner counts on that; the due time that stands for the lease stays with it.
 */
export function leaseAfter(
  { epoch, lease, dueAt }: Pick<Change, "epoch" | "lease" | "dueAt">,
  before: Tenancy | undefined,
): Pick<Tenancy, "lease" | "dueAt"> {
  const due = dueAt === "keep" ? (before?.dueAt ?? null) : dueAt;
  if (lease === "keep") return { lease: before?.lease ?? null, dueAt: due };
  const known = before?.epoch === epoch && before.lease?.owner === lease?.owner ? before.lease : null;
  if (lease === null || known === null || known.until <= lease.until) return { lease, dueAt: due };
  return { lease: known, dueAt: due === lease.until ? known.until : due };
}

import type { Page } from "@osbert/journal";
import { asBrokerError } from "../endpoints/as-broker-error.js";
import type { InstanceAddress } from "../records/instance-key.js";

/** One of many operations that something is done to. */
export interface BulkTarget extends InstanceAddress {
  readonly operation: string;
  readonly verb: string;
  readonly binding: string | null;
  readonly state: string;
}

/** What became of it. */
export type BulkItem = BulkTarget &
  (
    | { readonly result: "done" /** The operation that goes on. */; readonly goes_on: string | null }
    /** A dry run: it would be tried. Whether it could be is only known then. */
    | { readonly result: "not tried" }
    | { readonly result: "refused"; readonly error: string }
  );

/**
 * Does something to each of a page, one after the other, each in a commit of its own with an entry of its own. One that is refused does
 * not stop the others; a store that does not answer does: what was done stays done, and the same may be asked again.
 */
export async function bulkAction(
  { items, next }: Page<BulkTarget>,
  dryRun: boolean,
  action: (target: BulkTarget) => Promise<string | null>,
): Promise<Page<BulkItem>> {
  const results: BulkItem[] = [];
  for (const target of items) results.push(dryRun ? { ...target, result: "not tried" } : await tryOne(target, action));
  return { items: results, next };
}

async function tryOne(target: BulkTarget, action: (target: BulkTarget) => Promise<string | null>): Promise<BulkItem> {
  try {
    return { ...target, result: "done", goes_on: await action(target) };
  } catch (error) {
    const told = asBrokerError(error);
    if (told.status >= 500) throw error;
    return { ...target, result: "refused", error: told.message };
  }
}

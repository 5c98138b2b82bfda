import type { Journal } from "@osbert/journal";
import { digestOfRevision, sourceKey } from "../reconcile/records.js";
import { keptRevisions, keptSources } from "./kept-sources.js";
import type { PushedStore } from "./pushed-store.js";

/** Removes what was pushed and is not referred to any more. What an instance was made of stays, whoever has taken it back. */
export async function sweepPushed(journal: Journal, pushed: PushedStore): Promise<void> {
  const digests = new Set<string>();
  for (const { identityName, listing } of await keptSources(journal))
    if (!listing)
      for await (const { id } of keptRevisions(journal, sourceKey(identityName))) digests.add(digestOfRevision(id));
  await pushed.sweep(digests);
}

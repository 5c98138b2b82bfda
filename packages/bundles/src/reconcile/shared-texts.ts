import type { KeptRevision, PlanIdentity, SpecRecord } from "./records.js";

/**
 * The same record, in which each text that it has twice is in memory once: of what was parsed, the digest of the current revision is a text of
 * its own in the history, and so are the ids of plans in what is remembered of them. Of thousands of specs that is a quarter of what they take.
 * As JSON it is the same to the letter.
 */
export function sharedTexts(record: SpecRecord): SpecRecord {
  if (record.kind !== "service") return record;
  const { current, history, knownPlans } = record;
  return {
    ...record,
    history: history.map((kept) => sameRevision(kept, current)),
    knownPlans: isSamePlans(knownPlans, current.plans) ? current.plans : knownPlans,
  };
}

function sameRevision(kept: KeptRevision, { digest, version }: KeptRevision): KeptRevision {
  return kept.digest === digest && kept.version === version ? { ...kept, digest, version } : kept;
}

/** To the letter: who compares a record with what is stored compares texts. */
function isSamePlans(one: readonly PlanIdentity[], other: readonly PlanIdentity[]): boolean {
  return one.length === other.length && JSON.stringify(one) === JSON.stringify(other);
}

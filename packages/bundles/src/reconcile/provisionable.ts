import type { Digest } from "../sources/source.js";
import type { CatalogEntry } from "./merge-sources.js";
import type { ServiceRecord } from "./records.js";

/** What a request is judged by: one committed snapshot, so that nobody ever waits for a run (F5-45). */
export interface CatalogView {
  /** What is offered under a service id. */
  readonly entry: CatalogEntry | undefined;
  /** What is kept under it, offered or not; the one that ranks first. */
  readonly record: ServiceRecord | undefined;
  /** Names of sources of which nobody knows yet what they hold. */
  readonly unread: readonly string[];
}

export type Provisionable =
  | { readonly kind: "yes" }
  /** It is missing: only if the registry still has this digest (F2). The answer is judged by `whenMissing`. */
  | {
      readonly kind: "ask the source";
      readonly source: string;
      readonly repository: string;
      readonly digest: Digest;
      readonly name: string;
    }
  /** F5-46: it may be in a source that has not been read. Where the platform takes 202, an operation waits for so long; else 503. */
  | {
      readonly kind: "not known yet";
      readonly waitMs: number;
      readonly retryAfterSeconds: number;
      readonly why: string;
    }
  /** 400. */
  | RefusedProvision;

export interface RefusedProvision {
  readonly kind: "refused";
  readonly error: "ServiceRetired" | null;
  readonly why: string;
}

export const waitForCatalogMs = 60_000;

const retryAfterSeconds = 10;

/** Whether a new instance can be made of a plan, as far as the catalog is concerned (F5-45 to 47). */
export function provisionable({ entry, record, unread }: CatalogView, planId: string): Provisionable {
  if (entry !== undefined && record !== undefined) {
    if (!entry.current.plans.some(({ id }) => id === planId)) return planRefusal(record, planId);
    if (entry.state === "active") return { kind: "yes" };
    const { repository } = record.ref;
    return { kind: "ask the source", source: entry.source, repository, digest: entry.current.digest, name: entry.name };
  }
  if (record?.state.kind === "retired") return retiredRefusal(record);
  if (unread.length > 0) {
    const why = `not all sources have been read yet: ${unread.join(", ")}`;
    return { kind: "not known yet", waitMs: waitForCatalogMs, retryAfterSeconds, why };
  }
  const why =
    record === undefined
      ? "service_id is not a service of this broker's catalog"
      : "this service is not offered at present; read the catalog again";
  return { kind: "refused", error: null, why };
}

/** What the registry says of a service that is missing. One that cannot be asked may have it: the platform comes again. */
export function whenMissing(
  answer: "there" | "gone" | "unreadable",
  name: string,
): Exclude<Provisionable, { readonly kind: "ask the source" }> {
  switch (answer) {
    case "there":
      return { kind: "yes" };
    case "gone":
      return {
        kind: "refused",
        error: "ServiceRetired",
        // The catalog lists it still, so to read that again would lead nowhere.
        why: `the content of ${name} is gone from its registry; it leaves the catalog when it retires`,
      };
    case "unreadable":
      return {
        kind: "not known yet",
        waitMs: waitForCatalogMs,
        retryAfterSeconds,
        why: `the registry of ${name} cannot be asked whether it still has it`,
      };
  }
}

/**
 * Why an instance does not change to another plan, as far as the catalog is concerned (F5-40, 50): the plan has to be offered still. Where
 * its own plan leads to is said by the revision that it is pinned to. An update of parameters alone never asks the catalog.
 */
export function planChangeProblem({ entry, record }: CatalogView, from: string, to: string): string | null {
  if (from === to || entry?.current.plans.some(({ id }) => id === to) === true) return null;
  return record?.state.kind === "retired"
    ? "the service has retired: its instances go on, and change to no other plan"
    : "plan_id is not a plan of this service any more; read the catalog again";
}

function planRefusal({ knownPlans }: ServiceRecord, planId: string): Provisionable {
  const gone = knownPlans.find(({ id }) => id === planId);
  const why =
    gone === undefined
      ? "plan_id is not a plan of this service"
      : `plan ${gone.name} has left this service; read the catalog again`;
  return { kind: "refused", error: gone === undefined ? null : "ServiceRetired", why };
}

function retiredRefusal({ state, current }: ServiceRecord): Provisionable {
  // Only a person's reason is for users: others name registries.
  const reason = state.kind === "retired" && state.reason === "withdrawn" ? `: ${state.why}` : "";
  const why = `${current.name} is not offered any more${reason}; read the catalog again`;
  return { kind: "refused", error: "ServiceRetired", why };
}

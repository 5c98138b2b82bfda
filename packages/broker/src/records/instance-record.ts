import type { InstanceMetadata, JsonObject, OriginatingIdentity } from "@osbert/protocol";
import type { EndedOperation } from "./ended-operation.js";
import type { Undo } from "./undo.js";

/**
 * What an instance goes through. `creating`: its provision has not ended. `failed`: it has, badly; what it left has to be undone by a
 * deprovision. `gone`: deprovisioned; only its history is left.
 */
export const instancePhases = ["creating", "ready", "failed", "deleting", "gone"] as const;

export type InstancePhase = (typeof instancePhases)[number];

/** What every decision about an instance needs: small, and kept in the resource itself. */
export type InstanceData = InstanceFacts & PhaseFacts;

/** What is known of an instance in every phase. */
interface InstanceFacts {
  readonly serviceId: string;
  readonly planId: string;
  /** Of the service, where it has revisions: the instance stays with it until it is upgraded. Earlier versions have kept none. */
  readonly revision?: string | null;
  /** When the provision took the revision. Earlier versions have kept none. */
  readonly revisionAt?: number;
  /**
   * It was accepted before it was known whether its service is offered, and nothing was done for it yet: its provision waits for the catalog
   * until then. Missing: it does not.
   */
  readonly awaitsCatalog?: number;
  /** The operation that has made sure that its revision is kept. It is asked once, before anything is done. */
  readonly keptFor?: string;
  /** Of the request that created it, without the plan. */
  readonly created: string;
  /** It was there before this broker, and `created` is without organization and space: who adopts an instance may not know them. */
  readonly adopted?: true;
  /** Bindings that are there or coming. */
  readonly bindings: number;
  /** The last operation on the instance itself that ended. */
  readonly last: EndedOperation | null;
  /** The bindings that went last, with the operations that removed or refused them: a late poll is told what became of them. */
  readonly removed: readonly (readonly [binding: string, ended: EndedOperation])[];
}

/** What a phase brings along. Earlier versions have kept both fields in every phase; where they mean nothing, nobody looks at them. */
type PhaseFacts =
  | { readonly phase: "creating" | "failed" | "gone" }
  | {
      readonly phase: "ready";
      /** The fingerprint of the update that is under way. */
      readonly updating: string | null;
    }
  | {
      readonly phase: "deleting";
      /** To go back to when the deprovision fails. */
      readonly phaseBefore: "ready" | "failed";
    };

/** The same instance in another phase: what belonged to the one before is left behind. */
export function inPhase(data: InstanceData, phase: PhaseFacts, changed: Partial<InstanceFacts> = {}): InstanceData {
  const { serviceId, planId, revision, revisionAt, awaitsCatalog, created, adopted, bindings, last, removed } = data;
  const facts = {
    ...{ serviceId, planId, created, bindings, last, removed },
    ...(revision != null && { revision }),
    ...(revisionAt !== undefined && { revisionAt }),
    ...(awaitsCatalog !== undefined && { awaitsCatalog }),
    ...(adopted !== undefined && { adopted }),
  };
  return { ...facts, ...changed, ...phase };
}

/** Without the mark of an update, which has ended. */
export function notUpdating(data: InstanceData): InstanceData {
  return data.phase === "ready" ? { ...data, updating: null } : data;
}

/** About to be deleted. One that was already, by a deprovision that was told to stop, goes back to what was before that. */
export function toDeleting(data: InstanceData): InstanceData {
  if (data.phase === "deleting") return data;
  return inPhase(data, { phase: "deleting", phaseBefore: data.phase === "ready" ? "ready" : "failed" });
}

/** Back to what it was before a deprovision that failed. */
export function notDeleted(data: InstanceData, changed: Partial<InstanceFacts>): InstanceData {
  if (data.phase !== "deleting") return { ...data, ...changed };
  return inPhase(
    data,
    data.phaseBefore === "ready" ? { phase: "ready", updating: null } : { phase: "failed" },
    changed,
  );
}

/** All else that is known of an instance: the part "instance" of the resource. */
export interface InstanceRecord {
  readonly serviceId: string;
  readonly planId: string;
  readonly organizationGuid: string;
  readonly spaceGuid: string;
  readonly context: JsonObject;
  readonly parameters: JsonObject;
  readonly maintenanceVersion: string | null;
  readonly dashboardUrl: string | null;
  /** The one that an answer to a provision or update has carried. FETCH-07: no other may be shown. */
  readonly dashboardTold: string | null;
  /** The platform waited for the end of the provision, so that it was told what was known then. */
  readonly awaited: boolean;
  readonly metadata: InstanceMetadata | null;
  /** What the author keeps. */
  readonly state: JsonObject | null;
  /** The steps of provisions that did not end well. */
  readonly undo: Undo;
  readonly identity: OriginatingIdentity | null;
}

export const instancePart = "instance";
/** What a request about the instance itself looks at. */
export const instanceParts: readonly (typeof instancePart)[] = [instancePart];

/** Of an instance's resource. One of which nothing but entries was ever written has none. */
export function instanceData(resource: { readonly data: InstanceData | null } | undefined): InstanceData | undefined {
  return resource?.data ?? undefined;
}

/** `null`: there is none, or it goes with what is offered now. */
export function revisionOf(data: InstanceData | undefined): string | null {
  return data?.revision ?? null;
}

/** Of an instance's resource. */
export function instanceRecord(
  resource: { readonly parts: { get(id: typeof instancePart): InstanceRecord | undefined } } | undefined,
): InstanceRecord | undefined {
  return resource?.parts.get(instancePart);
}

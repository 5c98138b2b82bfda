import type { Resource } from "@osbert/journal";
import type { InstanceMetadata, JsonObject, OriginatingIdentity } from "@osbert/protocol";
import type { EndedOperation } from "./ended-operation.js";
import type { Undo } from "./undo.js";

/**
 * `creating`: its provision has not ended. `failed`: it has, badly; what it left has to be undone by a deprovision.
 * `gone`: deprovisioned; only its history is left.
 */
export type InstancePhase = "creating" | "ready" | "failed" | "deleting" | "gone";

/** What every decision about an instance needs: small, and kept in the resource itself. */
export interface InstanceData {
  readonly phase: InstancePhase;
  /** To go back to when a deprovision fails. */
  readonly phaseBefore: "ready" | "failed";
  readonly serviceId: string;
  readonly planId: string;
  /** Of the request that created it, without the plan. */
  readonly created: string;
  /** Of the update that is under way. */
  readonly updating: string | null;
  /** Bindings that are there or coming. */
  readonly bindings: number;
  /** The last operation on the instance itself that ended. */
  readonly last: EndedOperation | null;
  /** The bindings that went last, with the operations that removed or refused them: a late poll is told what became of them. */
  readonly removed: readonly (readonly [binding: string, ended: EndedOperation])[];
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

export function instanceData(resource: Resource | undefined): InstanceData | undefined {
  if (resource === undefined || resource.data === null) return undefined;
  return resource.data as unknown as InstanceData;
}

export function instanceRecord(resource: Resource): InstanceRecord | undefined {
  return resource.parts.get(instancePart) as unknown as InstanceRecord | undefined;
}

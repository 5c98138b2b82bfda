import type { Json, Resource } from "@osbert/journal";
import type { JsonObject, OriginatingIdentity } from "@osbert/protocol";
import type { OfferedPlan } from "../catalog/catalog.js";
import { fingerprint } from "../records/fingerprint.js";
import {
  type InstanceData,
  type InstanceRecord,
  instanceData,
  instancePart,
  instanceRecord,
} from "../records/instance-record.js";
import { laneOf } from "../records/lane.js";
import { instanceOperation, isBusy } from "../records/open-operations.js";
import type { ProvisionAsk } from "../requests/asks.js";
import type { Prepared } from "../service/service.js";
import { accepted, refused, type Verdict } from "./decision.js";

/** What deciding takes besides what is stored. `problem`: why a new instance could not be made of this request. */
export interface ProvisionMatter {
  readonly ask: ProvisionAsk;
  readonly offered: OfferedPlan | undefined;
  readonly problem: Verdict | null;
  readonly prepared: Prepared;
  readonly identity: OriginatingIdentity | null;
  /** The platform waits for the end, and is told what is known then. */
  readonly awaited: boolean;
  readonly deadlineMs: number;
}

/**
 * PUT /v2/service_instances/:id. A repeat is told from another request first, so that an instance of a plan which is not offered any
 * more is still found by its own request; only then is it asked whether a new one can be made.
 */
export function decideProvision(resource: Resource | undefined, matter: ProvisionMatter): Verdict {
  const { ask, problem } = matter;
  const data = instanceData(resource);
  if (data === undefined || data.phase === "gone") return problem ?? begin(matter, data, undefined);
  const same = isSame(data, ask);
  switch (data.phase) {
    case "creating": {
      const operation = instanceOperation(resource);
      if (!same) return conflict("is being provisioned");
      return operation === undefined
        ? refused("concurrency", "the instance is being changed")
        : { kind: "repeated", operation: operation.id };
    }
    case "deleting":
      return refused("concurrency", "the instance is being deprovisioned; ask again when it is gone");
    case "failed":
      // B9: the same request is a new attempt; another one has to delete first what the failed one left.
      if (!same) return conflict("could not be provisioned and has to be deleted first; it was asked for");
      // One that was told to stop may still be at work; its end would be taken for that of the new attempt.
      if (isBusy(resource, null)) return refused("concurrency", "the instance is being changed; ask again soon");
      return problem ?? begin(matter, data, resource === undefined ? undefined : instanceRecord(resource));
    case "ready":
      return same ? { kind: "done already" } : conflict("exists");
  }
}

/** Identical: service, plan, parameters, organization and space. Not the user, not the context (names in it change). */
export function requestFingerprint(ask: ProvisionAsk): string {
  return fingerprint({ s: ask.serviceId, o: ask.organizationGuid, p: ask.spaceGuid, a: ask.parameters });
}

function isSame(data: InstanceData, ask: ProvisionAsk): boolean {
  // The plan is compared with the present one: it may have been changed by an update since.
  return data.planId === ask.planId && data.created === requestFingerprint(ask);
}

function conflict(how: string): Verdict {
  return refused(
    "conflict",
    `an instance with this id ${how} with other attributes (service, plan, parameters, organization or space)`,
  );
}

/** B1: the record is written before any of the author's code runs. */
function begin(
  { ask, prepared, identity, awaited, deadlineMs }: ProvisionMatter,
  before: InstanceData | undefined,
  failed: InstanceRecord | undefined,
): Verdict {
  const data: InstanceData = {
    phase: "creating",
    phaseBefore: "failed",
    serviceId: ask.serviceId,
    planId: ask.planId,
    created: requestFingerprint(ask),
    updating: null,
    bindings: 0,
    last: before?.last ?? null,
    removed: before?.removed ?? [],
  };
  const record: InstanceRecord = {
    serviceId: ask.serviceId,
    planId: ask.planId,
    organizationGuid: ask.organizationGuid,
    spaceGuid: ask.spaceGuid,
    context: ask.context as JsonObject,
    parameters: ask.parameters,
    maintenanceVersion: ask.maintenance?.version ?? null,
    dashboardUrl: prepared.dashboardUrl ?? null,
    dashboardTold: prepared.dashboardUrl ?? null,
    awaited,
    metadata: prepared.metadata ?? null,
    // What a failed attempt has saved is handed to the next one.
    state: failed?.state ?? null,
    undo: failed?.undo ?? [],
    identity,
  };
  return accepted({
    data: data as unknown as Json,
    parts: { [instancePart]: record as unknown as Json },
    labels: { service: ask.serviceId, plan: ask.planId },
    accept: [{ kind: "provision", lane: laneOf(ask.serviceId), deadlineMs }],
    gone: false,
  });
}

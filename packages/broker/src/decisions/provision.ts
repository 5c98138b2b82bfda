import {
  BrokerError,
  type Context,
  type JsonObject,
  type MaintenanceInfo,
  type OriginatingIdentity,
} from "@osbert/protocol";
import type { BrokerCatalog } from "../catalog/catalog.js";
import type { NotKnownYet } from "../catalog/service-source.js";
import { fingerprint } from "../records/fingerprint.js";
import {
  type InstanceData,
  type InstanceRecord,
  instanceData,
  instancePart,
  instanceRecord,
} from "../records/instance-record.js";
import type { InstanceResource } from "../records/instance-resource.js";
import { laneOf } from "../records/lane.js";
import { instanceOperation, isBusy } from "../records/open-operations.js";
import type { Prepared } from "../service/service.js";
import { concurrencyError, mustWait } from "./concurrency.js";
import { accepted, type Decision, refused } from "./decision.js";
import { maintenanceConflict } from "./maintenance-conflict.js";
import { sizeProblem } from "./size-problem.js";

/** What a platform asks, read from the wire and checked for its shape. */
export interface ProvisionRequest {
  readonly serviceId: string;
  readonly planId: string;
  readonly organizationGuid: string;
  readonly spaceGuid: string;
  readonly context: Context;
  readonly parameters: JsonObject;
  readonly maintenance: MaintenanceInfo | null;
}

/** What deciding takes besides what is stored. */
export interface ProvisionFacts {
  readonly request: ProvisionRequest;
  /** Why a new instance could not be made of this request; `null`: it could. */
  readonly problem: Decision | null;
  readonly prepared: Prepared;
  /** Of the service that is offered now. */
  readonly revision: string | null;
  /** It is not known yet whether the service is offered: the operation waits for that. `null`: it is known. */
  readonly notKnownYet: NotKnownYet | null;
  readonly identity: OriginatingIdentity | null;
  /** The platform waits for the end, and is told what is known then. */
  readonly awaited: boolean;
  readonly deadlineMs: number;
}

/**
 * PUT /v2/service_instances/:id. A repeat is told from another request first, so that an instance of a plan which is not offered any
 * more is still found by its own request; only then is it asked whether a new one can be made.
 */
export function decideProvision(resource: InstanceResource | undefined, facts: ProvisionFacts, now: number): Decision {
  const { request, problem } = facts;
  const data = instanceData(resource);
  if (data === undefined || data.phase === "gone") return problem ?? begin(facts, data, undefined, now);
  const same = isSame(data, request);
  switch (data.phase) {
    case "creating": {
      const operation = instanceOperation(resource);
      if (!same) return conflict("is being provisioned");
      return operation === undefined
        ? mustWait(concurrencyError.instanceBusy())
        : { kind: "repeated", operation: operation.id };
    }
    case "deleting":
      return mustWait(concurrencyError.instanceDeleting());
    case "failed":
      // B9: the same request is a new attempt; another one has to delete first what the failed one left.
      if (!same) return conflict("could not be provisioned and has to be deleted first; it was asked for");
      // One that was told to stop may still be at work; its end would be taken for that of the new attempt.
      if (isBusy(resource, null)) return mustWait(concurrencyError.instanceStopping());
      if (problem !== null) return problem;
      // What waits has done nothing and has no revision. This one may have done something, and its own revision has to remove that.
      if (facts.notKnownYet !== null) return unavailable(facts.notKnownYet);
      return begin(facts, data, resource === undefined ? undefined : instanceRecord(resource), now);
    case "ready":
      return same ? { kind: "done already" } : conflict("exists");
  }
}

/** Why no new instance can be made of a request, from the catalog's point of view. */
export function provisionProblem({ services }: BrokerCatalog, request: ProvisionRequest): Decision | null {
  const service = services.get(request.serviceId);
  if (service === undefined) return refused("bad-request", "service_id is not a service of this broker's catalog");
  const offered = service.plans.get(request.planId);
  if (offered === undefined) return refused("bad-request", "plan_id is not a plan of this service");
  const outdated = maintenanceConflict(request.maintenance, offered);
  if (outdated !== null) return outdated;
  const invalid = offered.validate.provision(request.parameters);
  if (invalid !== null) return refused("bad-request", invalid);
  return sizeProblem({ parameters: request.parameters, context: request.context });
}

/** For whom waiting is no answer. */
export function unavailable({ why, retryAfterSeconds }: NotKnownYet): Decision {
  return { kind: "refused", error: new BrokerError("unavailable", why, { retryAfterSeconds }) };
}

/** Identical: service, plan, parameters, organization and space. Not the user, not the context (names in it change). */
function requestFingerprint(request: ProvisionRequest): string {
  const { serviceId, organizationGuid, spaceGuid, parameters } = request;
  return fingerprint({ s: serviceId, o: organizationGuid, p: spaceGuid, a: parameters });
}

/** Of an instance that was adopted: the same without organization and space. */
export function adoptedFingerprint({
  serviceId,
  parameters,
}: Pick<ProvisionRequest, "serviceId" | "parameters">): string {
  return fingerprint({ s: serviceId, a: parameters });
}

function isSame(data: InstanceData, request: ProvisionRequest): boolean {
  // The plan is compared with the present one: it may have been changed by an update since.
  if (data.planId !== request.planId) return false;
  return data.created === (data.adopted === true ? adoptedFingerprint(request) : requestFingerprint(request));
}

function conflict(how: string): Decision {
  return refused(
    "conflict",
    `an instance with this id ${how} with other attributes (service, plan, parameters, organization or space)`,
  );
}

/** B1: the record is written before any of the author's code runs. */
function begin(
  { request, prepared, revision, notKnownYet, identity, awaited, deadlineMs }: ProvisionFacts,
  before: InstanceData | undefined,
  failed: InstanceRecord | undefined,
  now: number,
): Decision {
  const data: InstanceData = {
    phase: "creating",
    serviceId: request.serviceId,
    planId: request.planId,
    ...(revision !== null && { revision, revisionAt: now }),
    ...(notKnownYet !== null && { awaitsCatalog: now + notKnownYet.waitMs }),
    created: requestFingerprint(request),
    bindings: 0,
    last: before?.last ?? null,
    removed: before?.removed ?? [],
  };
  const record: InstanceRecord = {
    serviceId: request.serviceId,
    planId: request.planId,
    organizationGuid: request.organizationGuid,
    spaceGuid: request.spaceGuid,
    context: request.context as JsonObject,
    parameters: request.parameters,
    maintenanceVersion: request.maintenance?.version ?? null,
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
    data,
    parts: { [instancePart]: record },
    labels: { service: request.serviceId, plan: request.planId },
    accept: [{ kind: "provision", lane: laneOf(request.serviceId), deadlineMs }],
    gone: false,
  });
}

import { isPlanUpdateable, type JsonObject, type OriginatingIdentity } from "@osbert/protocol";
import type { BrokerCatalog } from "../catalog/catalog.js";
import type { OfferedPlan, OfferedService } from "../catalog/offered-service.js";
import type { Refusal } from "../catalog/service-source.js";
import { fingerprint } from "../records/fingerprint.js";
import {
  type InstanceData,
  type InstanceRecord,
  instanceData,
  instanceRecord,
  revisionOf,
} from "../records/instance-record.js";
import type { InstanceResource, UpdateOperationInput, UpdateRequest } from "../records/instance-resource.js";
import { laneOf } from "../records/lane.js";
import { instanceOperation, someBindingOperation } from "../records/open-operations.js";
import type { PlanDefinition, Prepared } from "../service/service.js";
import { concurrencyError, mustWait } from "./concurrency.js";
import { accepted, type Decision, refused } from "./decision.js";
import { maintenanceConflict } from "./maintenance-conflict.js";

import { sizeProblem } from "./size-problem.js";

export interface UpdateFacts {
  readonly request: UpdateRequest;
  /** In which the service is as it was at the instance's revision, or as it is now: see `isUpgrade`. */
  readonly catalog: BrokerCatalog;
  /** The instance's, when the catalog was chosen; `null` where nothing was to begin. */
  readonly revision: string | null;
  /** What the source of the services has against the change of the plan, if the request is one. */
  readonly planRefusal: Refusal | null;
  readonly prepared: Prepared;
  readonly identity: OriginatingIdentity | null;
  /** The platform waits for the end, and is told what is known then. */
  readonly awaited: boolean;
  readonly deadlineMs: number;
}

/** PATCH /v2/service_instances/:id. */
export function decideUpdate(resource: InstanceResource | undefined, facts: UpdateFacts): Decision {
  const { request, catalog, prepared, awaited, identity, deadlineMs } = facts;
  const data = instanceData(resource);
  if (data === undefined || data.phase === "gone" || data.phase === "failed")
    return refused("not-found", "there is no such instance");
  if (request.serviceId !== data.serviceId)
    return refused("bad-request", "service_id is not the service of this instance");
  const running = instanceOperation(resource);
  const asked = updateFingerprint(request);
  if (running?.kind === "update" && data.phase === "ready" && data.updating === asked)
    return { kind: "repeated", operation: running.id };
  if (running !== undefined) return mustWait(concurrencyError.instanceBusy(running.kind));
  if (data.phase !== "ready") return mustWait(concurrencyError.instanceBusy());
  if (someBindingOperation(resource) !== undefined) return mustWait(concurrencyError.someBindingBusy());
  // Upgraded since the catalog was chosen.
  if (revisionOf(data) !== facts.revision) return mustWait(concurrencyError.instanceStopping());
  const record = resource === undefined ? undefined : instanceRecord(resource);
  const updated = record === undefined ? undefined : updatedBy(request, record);
  const problem =
    problemOf(data, facts, updated?.parameters ?? {}) ?? (updated === undefined ? null : sizeProblem(updated));
  if (problem !== null) return problem;
  if (isEmpty(data, request)) return { kind: "done already" };
  const leadsTo = catalog.services.get(data.serviceId)?.service.revision ?? null;
  const input: UpdateOperationInput = {
    ...request,
    // Where neither has one, there is nothing to say.
    ...((leadsTo !== null || facts.revision !== null) && { revision: leadsTo }),
    prepared,
    awaited,
    identity,
  };
  return accepted({
    data: { ...data, updating: asked },
    accept: [{ kind: "update", lane: laneOf(data.serviceId), input, deadlineMs }],
  });
}

/**
 * Whether an update leads to what is offered now, away from the instance's revision: the platform asks for the maintenance version of the
 * catalog, or for a plan that was not there. Everything else is done by what the instance was made of.
 */
export function isUpgrade(
  request: UpdateRequest,
  planId: string,
  own: OfferedService | undefined,
  present: OfferedService | undefined,
): boolean {
  if (own === present || present === undefined) return false;
  const plan = own?.plans.get(planId);
  // MAINT-04: a version is held against the catalog as it is now.
  return (plan === undefined || request.maintenance !== null) && present.plans.has(planId);
}

/** What is kept of an instance after an update: what the platform does not say stays as it was. */
export function updatedBy(
  request: Pick<UpdateRequest, "parameters" | "context"> | null,
  record: InstanceRecord,
): Pick<InstanceRecord, "parameters" | "context"> {
  return {
    parameters: request?.parameters == null ? record.parameters : { ...record.parameters, ...request.parameters },
    context: request?.context == null ? record.context : { ...record.context, ...request.context },
  };
}

function updateFingerprint({ planId, context, parameters, maintenance }: UpdateRequest): string {
  return fingerprint({ p: planId, c: context, a: parameters, m: maintenance?.version ?? null });
}

function isEmpty(data: InstanceData, request: UpdateRequest): boolean {
  const samePlan = request.planId === null || request.planId === data.planId;
  return samePlan && request.parameters === null && request.context === null && request.maintenance === null;
}

/** Why this cannot be done, from the catalog's point of view. `resulting`: the parameters that the instance would have. */
function problemOf(
  data: InstanceData,
  { request, catalog, revision, planRefusal }: UpdateFacts,
  resulting: JsonObject,
): Decision | null {
  const service = catalog.services.get(data.serviceId);
  if (service === undefined)
    return refused("unprocessable", "the service of this instance is not offered any more; it can only be deleted");
  const changesPlan = request.planId !== null && request.planId !== data.planId;
  const target = service.plans.get(request.planId ?? data.planId);
  if (changesPlan && planRefusal !== null) return refused(planRefusal.code, planRefusal.why);
  if (changesPlan && target === undefined) return refused("bad-request", "plan_id is not a plan of this service");
  if (changesPlan && !mayChangePlan(service.plans.get(data.planId), service.offering.plan_updateable ?? false)) {
    return refused("unprocessable", "the plan of this instance cannot be changed");
  }
  const onlyContext =
    request.context !== null && request.parameters === null && !changesPlan && request.maintenance === null;
  if (onlyContext && service.offering.allow_context_updates !== true) {
    return refused("unprocessable", "this service does not take updates of the context alone");
  }
  const outdated = maintenanceConflict(request.maintenance, target);
  if (outdated !== null) return outdated;
  if (service.service.update === undefined && !onlyContext && !isEmpty(data, request)) {
    return refused("unprocessable", "instances of this service cannot be updated");
  }
  const invalid = request.parameters === null ? null : (target?.validate.update(request.parameters) ?? null);
  if (invalid !== null) return refused("bad-request", invalid);
  const upgrades = (service.service.revision ?? null) !== revision;
  if (!(changesPlan || upgrades) || target === undefined) return null;
  // Where nothing says what an update may bring, an instance that comes from another plan is one that this plan could have made. One that
  // comes from another revision always is: what it has kept may be what that one does not take any more.
  if (!upgrades && target.definition.update !== undefined) return null;
  // Whose schema cannot be held against anything must not keep an instance where it is: it brings nothing that it did not have.
  const ifTooMuch = request.parameters === null ? "take" : "refuse";
  const unfit = target.validate.provision(withoutUpdatedOnly(resulting, target.definition), ifTooMuch);
  return unfit === null
    ? null
    : refused("bad-request", `after the ${changesPlan ? "change" : "upgrade"} to plan ${target.name}, ${unfit}`);
}

/** Parameters without those that only updates bring: the schema of provisions may know nothing of them. */
function withoutUpdatedOnly(parameters: JsonObject, { provision, update }: PlanDefinition): JsonObject {
  const known = (schema: unknown) =>
    new Set(Object.keys((schema as { readonly properties?: object } | undefined)?.properties ?? {}));
  const [made, updated] = [known(provision), known(update)];
  return Object.fromEntries(Object.entries(parameters).filter(([name]) => made.has(name) || !updated.has(name)));
}

function mayChangePlan(current: OfferedPlan | undefined, serviceSays: boolean): boolean {
  return current === undefined ? serviceSays : isPlanUpdateable(current.offering, current.plan);
}

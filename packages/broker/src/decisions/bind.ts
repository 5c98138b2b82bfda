import { isBindable, type JsonObject, type OriginatingIdentity } from "@osbert/protocol";
import type { BrokerCatalog } from "../catalog/catalog.js";
import { type BindingRecord, bindingPart, bindingRecord, isExpired } from "../records/binding-record.js";
import { fingerprint } from "../records/fingerprint.js";
import { instanceData, revisionOf } from "../records/instance-record.js";
import { type InstanceResource, instanceResource } from "../records/instance-resource.js";
import { laneOf } from "../records/lane.js";
import { bindingOperation, instanceOperation, isBusy } from "../records/open-operations.js";
import { concurrencyError, mustWait } from "./concurrency.js";
import { accepted, type Decision, refused } from "./decision.js";

import { sizeProblem } from "./size-problem.js";

/** What a platform asks, read from the wire and checked for its shape. */
export interface BindRequest {
  /** `null` in a rotation that leaves it to the predecessor. */
  readonly serviceId: string | null;
  readonly planId: string | null;
  readonly context: JsonObject;
  readonly appGuid: string | null;
  readonly bindResource: JsonObject;
  readonly parameters: JsonObject;
  readonly predecessor: string | null;
}

export interface BindFacts {
  readonly binding: string;
  readonly request: BindRequest;
  /** In which the service is as it was at the instance's revision. */
  readonly catalog: BrokerCatalog;
  /** The instance's, when the catalog was chosen; `null` where nothing was to begin; `undefined`: the catalog is the same for all revisions. */
  readonly revision: string | null | undefined;
  readonly identity: OriginatingIdentity | null;
  readonly deadlineMs: number;
}

/** PUT …/service_bindings/:id, rotation included. Binds of one instance run side by side. */
export function decideBind(resource: InstanceResource | undefined, facts: BindFacts, now: number): Decision {
  const { request, binding } = facts;
  const data = instanceData(resource);
  if (resource === undefined || data === undefined || data.phase === "gone" || data.phase === "failed") {
    return refused("not-found", "there is no such instance");
  }
  const running = instanceOperation(resource);
  if (running !== undefined || data.phase !== "ready") return mustWait(concurrencyError.instanceBusy(running?.kind));
  const predecessor = request.predecessor === null ? undefined : bindingRecord(resource, request.predecessor);
  const existing = bindingRecord(resource, binding);
  const asked = bindFingerprint(request);
  const otherIds = idsProblem(request, data);
  if (existing !== undefined && existing.phase !== "failed") {
    // The request that made it may come again after the instance has got another plan.
    const isRepeat = otherIds === null || idsProblem(request, { ...data, planId: existing.planId }) === null;
    return repeat(existing, existing.created === asked && isRepeat, resource, binding);
  }
  if (existing !== undefined && (existing.created !== asked || otherIds !== null))
    return refused("conflict", `a binding with this id failed with other attributes (${attributes}); delete it first`);
  if (otherIds !== null) return refused("bad-request", otherIds);
  // One that was told to stop may still be at work; its end would be taken for that of the new attempt.
  if (isBusy(resource, bindingPart(binding))) return mustWait(concurrencyError.bindingStopping());
  // Upgraded since the catalog was chosen.
  if (facts.revision !== undefined && revisionOf(data) !== facts.revision)
    return mustWait(concurrencyError.instanceStopping());
  const problem = problemOf(facts, data, predecessor, now);
  if (problem !== null) return problem;
  const record: BindingRecord = {
    phase: "creating",
    planId: data.planId,
    // ROT-10: what the platform does not say in a rotation is as it was.
    parameters: predecessor?.parameters ?? request.parameters,
    appGuid: request.appGuid ?? predecessor?.appGuid ?? null,
    bindResource:
      Object.keys(request.bindResource).length > 0 ? request.bindResource : (predecessor?.bindResource ?? {}),
    context: Object.keys(request.context).length > 0 ? (request.context as JsonObject) : (predecessor?.context ?? {}),
    predecessor: request.predecessor,
    created: asked,
    state: existing?.state ?? null,
    undo: existing?.undo ?? [],
    last: existing?.last ?? null,
    identity: facts.identity,
  };
  const part = bindingPart(binding);
  return accepted({
    data: { ...data, bindings: data.bindings + 1 },
    parts: instanceResource.part(part, record),
    accept: [{ kind: "bind", part, mode: "shared", lane: laneOf(data.serviceId), deadlineMs: facts.deadlineMs }],
  });
}

/**
 * Identical: application, bind resource, parameters and predecessor. Service and plan are compared with those of the instance, whose
 * plan may have been changed since; annotations of the application are not part of it, as they change by themselves.
 */
function bindFingerprint({ appGuid, bindResource, parameters, predecessor }: BindRequest): string {
  const stable = Object.fromEntries(Object.entries(bindResource).filter(([name]) => !name.endsWith("_annotations")));
  return fingerprint({ g: appGuid, r: stable, a: parameters, b: predecessor });
}

const attributes = "service_id, plan_id, parameters, application or bind_resource";

/** Why these are not the ids of the instance. What a rotation does not say is the predecessor's. */
function idsProblem(
  request: BindRequest,
  instance: { readonly serviceId: string; readonly planId: string },
): string | null {
  if (request.serviceId !== null && request.serviceId !== instance.serviceId)
    return "service_id is not the service of this instance";
  return request.planId !== null && request.planId !== instance.planId
    ? "plan_id is not the plan of this instance"
    : null;
}

function repeat(existing: BindingRecord, isSame: boolean, resource: InstanceResource, binding: string): Decision {
  if (existing.phase === "deleting") return mustWait(concurrencyError.bindingDeleting());
  if (!isSame) return refused("conflict", `a binding with this id exists with other attributes (${attributes})`);
  if (existing.phase === "ready") return { kind: "done already" };
  const operation = bindingOperation(resource, bindingPart(binding));
  return operation === undefined
    ? mustWait(concurrencyError.bindingBusy())
    : { kind: "repeated", operation: operation.id };
}

function problemOf(
  { request, catalog }: BindFacts,
  data: { readonly serviceId: string; readonly planId: string },
  predecessor: BindingRecord | undefined,
  now: number,
): Decision | null {
  const service = catalog.services.get(data.serviceId);
  if (service === undefined)
    return refused("unprocessable", "the service of this instance is not offered any more; it can only be deleted");
  const plan = service.plans.get(data.planId);
  const bindable = plan === undefined ? service.offering.bindable : isBindable(service.offering, plan.plan);
  if (!bindable || service.service.bind === undefined)
    return refused("unprocessable", "instances of this plan cannot be bound");
  if (request.predecessor !== null) {
    // B10: nobody knows any more whether those of a retired plan could be; its instances stay fully operable.
    if (plan !== undefined && plan.plan.binding_rotatable !== true)
      return refused("unprocessable", "bindings of this plan cannot be rotated");
    if (predecessor?.phase !== "ready" || isExpired(predecessor, now)) {
      return refused("bad-request", "predecessor_binding_id is not a valid binding of this instance");
    }
    return sizeProblem({
      parameters: predecessor.parameters,
      bind_resource: request.bindResource,
      context: request.context,
    });
  }
  if (plan?.definition.requiresApp === true && request.appGuid === null) {
    return refused("requires-app", "a binding of this service needs an application: give bind_resource.app_guid");
  }
  const invalid = plan?.validate.bind(request.parameters) ?? null;
  if (invalid !== null) return refused("bad-request", invalid);
  return sizeProblem({ parameters: request.parameters, bind_resource: request.bindResource, context: request.context });
}

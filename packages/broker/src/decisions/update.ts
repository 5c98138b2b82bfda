import type { Json, Resource } from "@osbert/journal";
import { isPlanUpdateable, type JsonObject, type OriginatingIdentity } from "@osbert/protocol";
import type { BrokerCatalog, OfferedPlan } from "../catalog/catalog.js";
import { fingerprint } from "../records/fingerprint.js";
import { type InstanceData, type InstanceRecord, instanceData, instanceRecord } from "../records/instance-record.js";
import { laneOf } from "../records/lane.js";
import { doing, instanceOperation, someBindingOperation } from "../records/open-operations.js";
import type { UpdateAsk } from "../requests/asks.js";
import type { Prepared } from "../service/service.js";
import { accepted, refused, type Verdict } from "./decision.js";

import { sizeProblem } from "./size-problem.js";

export interface UpdateMatter {
  readonly ask: UpdateAsk;
  readonly catalog: BrokerCatalog;
  readonly prepared: Prepared;
  readonly identity: OriginatingIdentity | null;
  /** The platform waits for the end, and is told what is known then. */
  readonly awaited: boolean;
  readonly deadlineMs: number;
}

/** What an update's operation is given. */
export interface UpdateInput extends UpdateAsk {
  readonly prepared: Prepared;
  readonly awaited: boolean;
  /** Who asks for the update; the instance's record says who created it. */
  readonly identity: OriginatingIdentity | null;
}

/** PATCH /v2/service_instances/:id. */
export function decideUpdate(resource: Resource | undefined, matter: UpdateMatter): Verdict {
  const { ask, catalog, prepared, awaited, identity, deadlineMs } = matter;
  const data = instanceData(resource);
  if (data === undefined || data.phase === "gone" || data.phase === "failed")
    return refused("not-found", "there is no such instance");
  if (ask.serviceId !== data.serviceId) return refused("bad-request", "service_id is not the service of this instance");
  const running = instanceOperation(resource);
  const asked = updateFingerprint(ask);
  if (running?.kind === "update" && data.updating === asked) return { kind: "repeated", operation: running.id };
  if (running !== undefined)
    return refused("concurrency", `the instance ${doing(running.kind)}; ask again when that is over`);
  if (data.phase !== "ready")
    return refused("concurrency", "the instance is being changed; ask again when that is over");
  if (someBindingOperation(resource) !== undefined)
    return refused("concurrency", "a binding of the instance is being changed; ask again when that is over");
  const record = resource === undefined ? undefined : instanceRecord(resource);
  const updated = record === undefined ? undefined : updatedBy(ask, record);
  const problem =
    problemOf(data, ask, catalog, updated?.parameters ?? {}) ?? (updated === undefined ? null : sizeProblem(updated));
  if (problem !== null) return problem;
  if (isEmpty(data, ask)) return { kind: "done already" };
  const input: UpdateInput = { ...ask, prepared, awaited, identity };
  return accepted({
    data: { ...data, updating: asked } as unknown as Json,
    accept: [{ kind: "update", lane: laneOf(data.serviceId), input: input as unknown as Json, deadlineMs }],
  });
}

/** What is kept of an instance after an update: what the platform does not say stays as it was. */
export function updatedBy(
  ask: Pick<UpdateAsk, "parameters" | "context"> | null,
  record: InstanceRecord,
): Pick<InstanceRecord, "parameters" | "context"> {
  return {
    parameters: ask?.parameters == null ? record.parameters : { ...record.parameters, ...ask.parameters },
    context: ask?.context == null ? record.context : { ...record.context, ...ask.context },
  };
}

export function updateFingerprint({ planId, context, parameters, maintenance }: UpdateAsk): string {
  return fingerprint({ p: planId, c: context, a: parameters, m: maintenance?.version ?? null });
}

function isEmpty(data: InstanceData, ask: UpdateAsk): boolean {
  const samePlan = ask.planId === null || ask.planId === data.planId;
  return samePlan && ask.parameters === null && ask.context === null && ask.maintenance === null;
}

/** Why this cannot be done, from the catalog's point of view. `resulting`: the parameters that the instance would have. */
function problemOf(data: InstanceData, ask: UpdateAsk, catalog: BrokerCatalog, resulting: JsonObject): Verdict | null {
  const service = catalog.services.get(data.serviceId);
  if (service === undefined)
    return refused("unprocessable", "the service of this instance is not offered any more; it can only be deleted");
  const changesPlan = ask.planId !== null && ask.planId !== data.planId;
  const target = service.plans.get(ask.planId ?? data.planId);
  if (changesPlan && target === undefined) return refused("bad-request", "plan_id is not a plan of this service");
  if (changesPlan && !mayChangePlan(service.plans.get(data.planId), service.offering.plan_updateable ?? false)) {
    return refused("unprocessable", "the plan of this instance cannot be changed");
  }
  const onlyContext = ask.context !== null && ask.parameters === null && !changesPlan && ask.maintenance === null;
  if (onlyContext && service.offering.allow_context_updates !== true) {
    return refused("unprocessable", "this service does not take updates of the context alone");
  }
  if (ask.maintenance !== null && ask.maintenance.version !== target?.plan.maintenance_info?.version) {
    return refused("maintenance-info-conflict", maintenanceSentence(target));
  }
  if (service.service.update === undefined && !onlyContext && !isEmpty(data, ask)) {
    return refused("unprocessable", "instances of this service cannot be updated");
  }
  const invalid = ask.parameters === null ? null : (target?.validate.update(ask.parameters) ?? null);
  if (invalid !== null) return refused("bad-request", invalid);
  // Where nothing says what an update may bring, an instance that comes from another plan is one that this plan could have made.
  if (!changesPlan || target === undefined || target.definition.update !== undefined) return null;
  const unfit = target.validate.provision(resulting);
  return unfit === null ? null : refused("bad-request", `after the change to plan ${target.name}, ${unfit}`);
}

function mayChangePlan(current: OfferedPlan | undefined, serviceSays: boolean): boolean {
  return current === undefined ? serviceSays : isPlanUpdateable(current.offering, current.plan);
}

export function maintenanceSentence(plan: OfferedPlan | undefined): string {
  const version = plan?.plan.maintenance_info?.version;
  if (version === undefined) return "the plan has no maintenance_info; read the catalog again";
  return `maintenance_info.version is not the plan's, which is ${version}; read the catalog again`;
}

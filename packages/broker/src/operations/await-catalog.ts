import { Permanent, RetryLater } from "@osbert/journal";
import { BrokerError, type JsonObject } from "@osbert/protocol";
import type { OfferedPlan } from "../catalog/offered-service.js";
import type { Judgement } from "../catalog/service-source.js";
import { type ProvisionRequest, provisionProblem } from "../decisions/provision.js";
import { instanceAddress } from "../records/instance-key.js";
import { type InstanceRecord, instanceData, instancePart } from "../records/instance-record.js";
import type { InstanceOperation } from "../records/instance-resource.js";
import type { Prepared } from "../service/service.js";
import { checkPrepared } from "./check-instance.js";
import { currentInstance } from "./load-records.js";
import type { RunPorts } from "./run-ports.js";

const lookEveryMs = 2_000;

/**
 * A provision that was accepted before anybody knew what is offered: it is judged here as its request would have been. The order of effects:
 * it waits, without a step, so that there is nothing to undo; once the service is known, the request is checked and the author's hook asked;
 * then one commit gives the instance its revision and takes the mark away, and the next attempt is a provision like any other. Killed in
 * between, it is judged again. Refused, or too late, it leaves no instance. It ends in a throw, always.
 */
export async function awaitCatalog(
  ports: RunPorts,
  operation: InstanceOperation<"provision">,
  until: number,
): Promise<never> {
  const record = await currentInstance(operation);
  if (record === undefined) throw new Permanent("the record of the instance is missing");
  const judgement = await judged(ports, record, instanceAddress(operation.key)?.platform ?? "");
  if (judgement.kind === "not known yet") {
    // Rejected: nothing was done, so the id is free.
    if (ports.now() >= until)
      throw new Permanent(`${judgement.why}; ask again later`, { details: { code: "unavailable", rejected: true } });
    operation.describe("waits for the catalog");
    throw new RetryLater(judgement.why, { afterMs: Math.min(lookEveryMs, Math.max(1, until - ports.now())) });
  }
  if (judgement.kind === "refused") throw new BrokerError(judgement.code, judgement.why);
  const catalog = ports.catalog();
  const problem = provisionProblem(catalog, requestOf(record));
  if (problem?.kind === "refused") throw problem.error;
  const offered = catalog.services.get(record.serviceId)?.plans.get(record.planId);
  const prepared = offered === undefined ? {} : await prepare(operation, record, offered);
  const revision = offered?.service.revision;
  await operation.change((resource) => {
    const data = instanceData(resource);
    // Deleted meanwhile: the mark says that there is nothing to remove.
    if (data?.phase !== "creating") return {};
    const { awaitsCatalog: _, ...known } = data;
    const { dashboardUrl = null, metadata = null } = prepared;
    return {
      data: { ...known, ...(revision !== undefined && { revision, revisionAt: ports.now() }) },
      parts: { [instancePart]: { ...record, dashboardUrl, metadata } },
    };
  });
  throw new RetryLater("the catalog is known", { afterMs: 0 });
}

async function judged(
  { judge }: RunPorts,
  { serviceId, planId }: InstanceRecord,
  platform: string,
): Promise<Judgement> {
  const judgement = judge?.provision(serviceId, planId, platform) ?? ({ kind: "allowed" } as const);
  return judgement.kind === "ask first" ? judgement.ask() : judgement;
}

function requestOf(record: InstanceRecord): ProvisionRequest {
  const { serviceId, planId, organizationGuid, spaceGuid, context, parameters, maintenanceVersion: version } = record;
  const maintenance = version === null ? null : { version };
  return { serviceId, planId, organizationGuid, spaceGuid, context, parameters, maintenance };
}

/** What the author would have been asked before the request was accepted. The platform was not told of the dashboard. */
async function prepare(
  { key, requestId }: InstanceOperation<"provision">,
  record: InstanceRecord,
  { service, name: plan }: OfferedPlan,
): Promise<Prepared> {
  const { serviceId, planId, organizationGuid, spaceGuid, context, identity } = record;
  const { platform, instance: id } = instanceAddress(key) ?? { platform: "", instance: "" };
  const instance = { id, platform, serviceId, planId, organizationGuid, spaceGuid, context };
  const parameters: JsonObject = record.parameters;
  const about = { plan, instance, parameters, identity };
  await service.hooks?.before?.({ ...about, verb: "provision", service: service.name, binding: null, requestId });
  return checkPrepared("prepare", service.prepare?.({ ...about, partial: undefined }));
}

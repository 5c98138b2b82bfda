import { revisionOf } from "../records/instance-record.js";
import type { InstanceOperation, InstanceResult } from "../records/instance-resource.js";
import type { ProvisionResult } from "../service/service.js";
import { runAfterHook } from "./after-hook.js";
import { checkKept } from "./check-kept.js";
import { checkInstanceResult, toInstanceResult } from "./instance-result.js";
import { loadInstance, planName } from "./load-records.js";
import type { RunPorts } from "./run-ports.js";
import { saveInstanceState } from "./save-state.js";
import { toWork } from "./to-work.js";

export async function runUpdate(ports: RunPorts, operation: InstanceOperation<"update">): Promise<InstanceResult> {
  const { revision: leadsTo = null } = operation.input;
  if (leadsTo !== revisionOf(operation.data)) await checkKept(ports, operation, leadsTo, operation.acceptedAt);
  const { record, service, instance } = await loadInstance(ports, operation);
  const { prepared, awaited, identity, ...request } = operation.input;
  // An upgrade may have dropped the plan that the instance comes from; its name is told if it can be had.
  const revision = revisionOf(operation.data);
  const own = (await Promise.resolve(ports.serviceOf(record.serviceId, revision)).catch(() => undefined)) ?? service;
  const plan = planName(service, request.planId ?? record.planId);
  const parameters = request.parameters ?? {};
  const input = {
    plan,
    parameters,
    instance:
      request.context === null ? instance : { ...instance, context: { ...instance.context, ...request.context } },
    identity,
    state: record.state ?? {},
    previous: { plan: planName(own, record.planId), parameters: record.parameters },
    maintenance: request.maintenance,
  };
  const work = toWork(operation, saveInstanceState(operation));
  const result = (await service.service.update?.(work, input)) as ProvisionResult<undefined> | undefined;
  // What nobody has touched is not judged: the schema may be younger than the instance.
  if (service.service.update !== undefined) await checkInstanceResult(operation, "update", service, result);
  await runAfterHook(service, operation, { verb: "update", plan, instance, binding: null, parameters, identity });
  const all = { ...prepared, ...result };
  return toInstanceResult(all, request, awaited ? all : prepared);
}

import { isJsonObject } from "@osbert/protocol";
import { revisionOf } from "../records/instance-record.js";
import type { InstanceOperation, InstanceResult } from "../records/instance-resource.js";
import type { ProvisionResult } from "../service/service.js";
import { runAfterHook } from "./after-hook.js";
import { awaitCatalog } from "./await-catalog.js";
import { checkKept } from "./check-kept.js";
import { checkInstanceResult, toInstanceResult } from "./instance-result.js";
import { loadInstance, planName } from "./load-records.js";
import type { RunPorts } from "./run-ports.js";
import { saveInstanceState } from "./save-state.js";
import { toWork } from "./to-work.js";

export async function runProvision(
  ports: RunPorts,
  operation: InstanceOperation<"provision">,
): Promise<InstanceResult> {
  const { data } = operation;
  if (data.awaitsCatalog !== undefined) await awaitCatalog(ports, operation, data.awaitsCatalog);
  await checkKept(ports, operation, revisionOf(data), data.revisionAt ?? operation.acceptedAt);
  const { record, service, instance } = await loadInstance(ports, operation);
  const { parameters, identity } = record;
  const plan = planName(service, record.planId);
  const save = saveInstanceState(operation);
  const input = { plan, parameters, instance, identity, partial: record.state ?? undefined };
  const result = (await service.service.provision?.(toWork(operation, save), input)) as
    | ProvisionResult<undefined>
    | undefined;
  await checkInstanceResult(operation, "provision", service, result).catch(async (error: unknown) => {
    // Refused as a whole, it still says what there is to undo.
    if (isJsonObject(result?.state)) await save(result.state);
    throw error;
  });
  await runAfterHook(service, operation, { verb: "provision", plan, instance, binding: null, parameters, identity });
  return toInstanceResult(result, null, record.awaited ? result : undefined);
}

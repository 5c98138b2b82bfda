import type { OriginatingIdentity } from "@osbert/protocol";
import { bindingPart } from "../records/binding-record.js";
import { deletedBy, type InstanceOperation } from "../records/instance-resource.js";
import type { Work } from "../service/service.js";
import { runAfterHook } from "./after-hook.js";
import { type LoadedBinding, loadBinding, planName, toBindingInfo } from "./load-records.js";
import type { RunPorts } from "./run-ports.js";
import { type SaveState, saveBindingState } from "./save-state.js";
import { toWork } from "./to-work.js";

export async function runUnbind(ports: RunPorts, operation: InstanceOperation<"unbind">): Promise<null> {
  const loaded = await loadBinding(ports, operation);
  const { service, record, instance, bindingRecord } = loaded;
  const identity = deletedBy(operation.input);
  await callUnbind(operation, { ...loaded, identity }, (save) => toWork(operation, save));
  const plan = planName(service, record.planId);
  const binding = toBindingInfo(loaded.binding, bindingRecord);
  const { parameters } = bindingRecord;
  await runAfterHook(service, operation, { verb: "unbind", plan, instance, binding, parameters, identity });
  return null;
}

/** Calls the author's function for one binding: in an operation of its own, or on the way of a deprovision. */
export async function callUnbind(
  operation: InstanceOperation<"unbind" | "deprovision">,
  loaded: LoadedBinding & { readonly identity: OriginatingIdentity | null },
  work: (save: SaveState) => Work,
): Promise<void> {
  const { service, record, instance, identity, binding, bindingRecord } = loaded;
  const steps = await operation.recordedBy(bindingRecord.undo);
  await service.service.unbind?.(work(saveBindingState(operation, bindingPart(binding))), {
    plan: planName(service, record.planId),
    parameters: bindingRecord.parameters,
    instanceParameters: record.parameters,
    instance,
    identity,
    binding: toBindingInfo(binding, bindingRecord),
    state: record.state ?? undefined,
    bindingState: bindingRecord.state ?? undefined,
    steps,
  });
}

import { Permanent } from "@osbert/journal";
import type { JsonObject } from "@osbert/protocol";
import { bindingPart } from "../records/binding-record.js";
import type { BindingResult, InstanceOperation } from "../records/instance-resource.js";
import { type BindResult, toBinding } from "../service/service.js";
import { runAfterHook } from "./after-hook.js";
import { checkBinding } from "./check-binding.js";
import { checkState } from "./check-state.js";
import { currentBinding, loadBinding, planName, toBindingInfo } from "./load-records.js";
import type { RunPorts } from "./run-ports.js";
import { saveBindingState } from "./save-state.js";
import { toWork } from "./to-work.js";

export async function runBind(ports: RunPorts, operation: InstanceOperation<"bind">): Promise<BindingResult> {
  const { record, service, instance, binding: id, bindingRecord } = await loadBinding(ports, operation);
  const { parameters, identity, predecessor } = bindingRecord;
  const plan = planName(service, record.planId);
  const binding = toBindingInfo(id, bindingRecord);
  const input = {
    plan,
    parameters,
    instance,
    binding,
    identity,
    state: record.state ?? {},
    predecessor: predecessor === null ? null : { id: predecessor, state: await stateOf(operation, predecessor) },
  };
  const work = toWork(operation, saveBindingState(operation, bindingPart(id)));
  const result = (await service.service.bind?.(work, input)) as BindResult<undefined> | undefined;
  if (result == null) {
    throw new Permanent("bind returned nothing: return { credentials }, or {} for a binding that has nothing to give");
  }
  const wrong = checkBinding(result, service.offering);
  if (wrong !== null) throw new Permanent(`bind returned what cannot be given out: ${wrong}`);
  await checkState("bind", {
    returned: result.state,
    kept: async () => (await currentBinding(operation))?.state ?? null,
    validate: service.service.bindingState === undefined ? undefined : service.validateBindingState,
  });
  const told = toBinding(result);
  await runAfterHook(service, operation, { verb: "bind", plan, instance, binding, parameters, identity });
  const saved = await currentBinding(operation);
  return { binding: told, state: (result.state as JsonObject | undefined) ?? saved?.state ?? null };
}

async function stateOf(operation: InstanceOperation<"bind">, binding: string): Promise<JsonObject | undefined> {
  const part = bindingPart(binding);
  const record = (await operation.parts([part])).get(part);
  return record?.state ?? undefined;
}

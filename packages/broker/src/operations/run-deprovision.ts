import { bindingId } from "../records/binding-record.js";
import { fingerprint } from "../records/fingerprint.js";
import type { ForcedResult } from "../records/forced-result.js";
import type { InstanceRecord } from "../records/instance-record.js";
import { deletedBy, type InstanceOperation, instanceResource } from "../records/instance-resource.js";
import { runAfterHook } from "./after-hook.js";
import { type FunctionCalls, functionCalls } from "./function-calls.js";
import { currentInstance, loadInstance, planName } from "./load-records.js";
import type { RunPorts } from "./run-ports.js";
import { callUnbind } from "./run-unbind.js";
import { saveInstanceState } from "./save-state.js";
import { toWork } from "./to-work.js";

/** Bindings that are left go first, each with the author's own unbind. */
export async function runDeprovision(
  ports: RunPorts,
  operation: InstanceOperation<"deprovision">,
): Promise<ForcedResult | null> {
  const calls = functionCalls(operation);
  await deprovisionWith(calls, ports, operation);
  const result = calls.result();
  if (result !== null && result.forced.length > 0) ports.passedOver(operation.key, operation.id, result.forced);
  return result;
}

async function deprovisionWith(
  calls: FunctionCalls,
  ports: RunPorts,
  operation: InstanceOperation<"deprovision">,
): Promise<void> {
  // Its provision never went on from waiting for the catalog: there is nothing to remove, and perhaps no such service. The mark alone does
  // not say so: earlier versions have put it on instances that had failed, too.
  if (operation.data.awaitsCatalog !== undefined && isUntouched(await currentInstance(operation))) return;
  const loaded = await loadInstance(ports, operation).catch((error: unknown) => calls.withoutService(error));
  const identity = deletedBy(operation.input);
  let { data } = operation;
  // A page at a time: each binding is gone from the record before the next page is read.
  for (
    let left = await ports.bindingsOf(operation.key);
    left.length > 0;
    left = await ports.bindingsOf(operation.key)
  ) {
    for (const { id, value: record } of left) {
      const binding = bindingId(id) ?? "";
      // Names of steps are short and must differ; ids of bindings may be long and alike.
      const prefix = `unbind ${binding.length <= 40 ? binding : fingerprint(binding)}: `;
      if (loaded !== undefined)
        await calls.call(`unbind ${binding}`, (bend) =>
          callUnbind(operation, { ...loaded, identity, binding, bindingRecord: record }, (save) =>
            bend(toWork(operation, save, prefix)),
          ),
        );
      // Counted as they go: if the deprovision fails half-way, what is left is told right. One that failed was not counted.
      if (record.phase === "ready") data = { ...data, bindings: Math.max(0, data.bindings - 1) };
      await operation.change({ data, parts: instanceResource.part(id, null) });
    }
  }
  if (loaded === undefined) return;
  const { service, record, instance } = loaded;
  const { parameters } = record;
  const plan = planName(service, record.planId);
  const steps = await operation.recordedBy(record.undo);
  await calls.call("deprovision", async (bend) => {
    const work = bend(toWork(operation, saveInstanceState(operation)));
    const state = record.state ?? undefined;
    await service.service.deprovision?.(work, { plan, parameters, instance, identity, state, steps });
    await runAfterHook(service, operation, {
      verb: "deprovision",
      plan,
      instance,
      binding: null,
      parameters,
      identity,
    });
  });
}

/** No provision of it has done or kept anything. */
function isUntouched(record: InstanceRecord | undefined): boolean {
  return record !== undefined && record.state === null && record.undo.length === 0;
}

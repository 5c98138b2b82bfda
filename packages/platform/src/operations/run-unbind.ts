import type { DeleteResult, InstanceData } from "../records/instance-record.js";
import { keys } from "../records/keys.js";
import { orphanRecords } from "../records/orphan-record.js";
import { deleteAtBroker } from "./delete-at-broker.js";
import { failure } from "./failure.js";
import type { InstanceOperation } from "./instance-operation.js";
import { joinLedger } from "./join-ledger.js";
import { mayComeBack, planOf } from "./run-delete.js";
import type { RunPorts } from "./run-ports.js";
import { suspectOrphan } from "./suspect-orphan.js";

/** Deletes a binding at its broker. Its credentials stay until that is confirmed (E10-46). */
export async function runUnbind(ports: RunPorts, operation: InstanceOperation<"unbind">): Promise<DeleteResult> {
  const { data, input } = operation;
  const part = `binding/${input.binding}` as const;
  const binding = (await operation.parts([part])).get(part);
  if (binding === undefined || data.osbId === null) return { asked: false };
  // A bind that failed has left nothing, or it is in the ledger, as what one has left that was stopped before it could fail.
  const isJoined = await joinLedger(ports, operation, { instance: data.osbId, binding: binding.osbId });
  if (isJoined || binding.phase === "failed" || (await isAnothers(ports, data, binding.osbId)))
    return { asked: isJoined };
  const plan = planOf(data);
  if (plan === null) throw failure("nobody knows which plan the instance has", { class: "preflight-drift" });
  // Its bind was stopped before the ledger had it: a person has to say whose it is (E10-63).
  if (binding.conflictId === binding.osbId) {
    await suspectOrphan(ports, operation, {
      instance: data.osbId,
      binding: binding.osbId,
      plan,
      reason: "it was unbound after the broker had answered its bind with 409",
      mayComeLate: false,
      held: true,
      isConflict: true,
    });
    return { asked: false };
  }
  await deleteAtBroker(ports, operation, { instance: data.osbId, binding: binding.osbId, plan: plan.id });
  if (mayComeBack(ports, binding.osbId, binding.lostBind))
    await suspectOrphan(ports, operation, {
      instance: data.osbId,
      binding: binding.osbId,
      plan,
      reason: "it was unbound, and an answer to its bind was never heard",
      mayComeLate: true,
      held: false,
      isConflict: false,
    });
  return { asked: true };
}

/** The broker answered 409 to its bind, which was stopped before it could fail: a person has to say whose it is (E10-63). */
async function isAnothers({ journal }: RunPorts, { broker, osbId }: InstanceData, binding: string): Promise<boolean> {
  const row = orphanRecords.resource(await journal().read(keys.orphan(broker, osbId ?? "", binding)));
  return row?.data.isConflict === true;
}

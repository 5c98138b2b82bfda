import type { DeleteResult, InstanceData, PlanRef } from "../records/instance-record.js";
import { keys } from "../records/keys.js";
import { orphanRecords } from "../records/orphan-record.js";
import { deleteAtBroker } from "./delete-at-broker.js";
import { failure } from "./failure.js";
import type { InstanceOperation } from "./instance-operation.js";
import { joinLedger } from "./join-ledger.js";
import type { RunPorts } from "./run-ports.js";
import { abandonToLedger, suspectOrphan } from "./suspect-orphan.js";

type DeleteOperation = InstanceOperation<"delete">;

/**
 * Deletes the instance at its broker, after what earlier attempts to create it may have left there: that is in the ledger, and is waited for, so that
 * there is one stream of DELETEs for each id (E10-22).
 */
export async function runDelete(ports: RunPorts, operation: DeleteOperation): Promise<DeleteResult> {
  const { data, input } = operation;
  const plan = planOf(data);
  const isConflict = data.osbId !== null && data.osbId === data.conflictId;
  if (input.mode === "abandon") {
    if (data.osbId !== null && plan !== null)
      await abandon(ports, operation, { instance: data.osbId, plan, isConflict });
    return { asked: false };
  }
  let joined = false;
  for (const former of data.formerOsbIds)
    if (await joinLedger(ports, operation, { instance: former, binding: null })) joined = true;
  if (data.osbId === null) return { asked: joined };
  if (plan === null) throw failure("nobody knows which plan the instance has", { class: "preflight-drift" });
  // Its create was stopped before it had found out whose it is: a person has to.
  if (isConflict) {
    await suspectOrphan(ports, operation, {
      instance: data.osbId,
      binding: null,
      plan,
      reason: "it was deleted after the broker had answered its create with 409",
      mayComeLate: false,
      held: true,
      isConflict,
    });
    return { asked: joined };
  }
  // Its create was stopped after it had given the id to the ledger, and before it forgot it. What was adopted is none of the ledger's: what that has
  // of it is from before.
  if (data.adoptedId !== data.osbId && (await joinLedger(ports, operation, { instance: data.osbId, binding: null })))
    return { asked: true };
  // An instance with bindings must not be deleted (P-DEL-01): what binds have left is deleted before it. If that takes long, the broker says no.
  for (const binding of await orphanedBindings(ports, data.broker, data.osbId))
    await joinLedger(ports, operation, { instance: data.osbId, binding }, ports.pauses.recreateMs);
  const { wasGone } = await deleteAtBroker(ports, operation, { instance: data.osbId, plan: plan.id });
  // A slow broker may still make it, and the ledger looks for that: the answer to the create never came, or there was nothing, or an attempt is lost
  // that something else has succeeded for.
  const isUnclear = data.applied === null && (wasGone || data.uncertainSince !== null);
  const isLost = data.adoptedId !== data.osbId && mayComeBack(ports, data.osbId, data.lostCreate);
  if (isUnclear || isLost)
    await suspectOrphan(ports, operation, {
      instance: data.osbId,
      binding: null,
      plan,
      reason: "it was deleted, and an answer to its create was never heard",
      mayComeLate: true,
      held: false,
      isConflict: false,
    });
  return { asked: true };
}

/** E10-29: the instance, and each binding that may be there, has a row of its own before any of it is forgotten. */
async function abandon(
  ports: RunPorts,
  operation: DeleteOperation,
  { instance, plan, isConflict }: { readonly instance: string; readonly plan: PlanRef; readonly isConflict: boolean },
): Promise<void> {
  const reason = operation.input.reason ?? "abandoned";
  await abandonToLedger(ports, operation, { instance, binding: null, plan, reason, isConflict });
  for (let after: string | undefined; ; ) {
    const page = await operation.partsUnder("binding/", { limit: 100, ...(after !== undefined && { after }) });
    for (const { value } of page.items)
      if (value.phase !== "failed")
        await abandonToLedger(ports, operation, {
          ...{ instance, binding: value.osbId, plan, reason },
          isConflict: value.conflictId === value.osbId,
        });
    if (page.next === null) return;
    after = page.next;
  }
}

/** Of rows that have not ended. Those that have stay for a while, and there may be many. */
async function orphanedBindings({ journal }: RunPorts, broker: string, osbId: string): Promise<readonly string[]> {
  const prefix = `${keys.orphan(broker, osbId, null)}/`;
  const found: string[] = [];
  let after: string | undefined;
  for (let page = 1; page <= mostPages && found.length < mostBindings; page++) {
    const { items, next } = await journal().find({ prefix, limit: 200, ...(after !== undefined && { after }) });
    for (const row of items) {
      const { bindingOsbId, endedAt } = orphanRecords.resource(row).data;
      if (bindingOsbId !== null && endedAt === null) found.push(bindingOsbId);
    }
    if (next === null) break;
    after = next;
  }
  return found.slice(0, mostBindings);
}

/** More than an instance can have: above this the broker says no, and the next delete goes on. */
const mostBindings = 200;
const mostPages = 100;

/** Whether an attempt to make it is lost that may still come. */
export function mayComeBack(
  { journal, pauses }: RunPorts,
  osbId: string,
  lost: { readonly osbId: string; readonly at: number } | undefined,
): boolean {
  return lost?.osbId === osbId && journal().now() - lost.at < pauses.lateMs;
}

/** The plan that the broker knows it by. */
export function planOf({ applied, askedPlan }: InstanceData): PlanRef | null {
  return applied?.plan ?? askedPlan ?? null;
}

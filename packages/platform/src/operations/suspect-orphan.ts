import type { TypedNewOperation } from "@osbert/journal";
import type { PlanRef } from "../records/instance-record.js";
import { brokerLane, instanceRef, keys } from "../records/keys.js";
import { type OrphanData, type OrphanShape, orphanLabels, orphanRecords } from "../records/orphan-record.js";
import type { InstanceOperation } from "./instance-operation.js";
import type { RunPorts } from "./run-ports.js";

/** What may be at a broker although nobody has it. */
export interface Suspicion {
  /** Ids at the broker. */
  readonly instance: string;
  readonly binding: string | null;
  readonly plan: PlanRef;
  readonly reason: string;
  /** Nobody knows that it is over, so that it may come into being later than it is looked for. */
  readonly mayComeLate: boolean;
  /** Nothing is deleted before someone has said so: what is known does not suffice for that. */
  readonly held: boolean;
  /** The broker answered 409: what exists under that id is never deleted because of it. */
  readonly isConflict: boolean;
  /** Nothing was done with the id since the row was dismissed, if it was: whoever has said what is to become of it is not asked again. */
  readonly keepsDismissed?: boolean;
}

/**
 * Writes it into the ledger, exactly once, and has it mitigated from there: the row is durable before whoever suspects it forgets the ids, and it
 * outlives the instance. What is in the ledger already stays as it is. Answers its key.
 */
export async function suspectOrphan(
  ports: RunPorts,
  operation: InstanceOperation,
  suspicion: Suspicion,
): Promise<string> {
  const held = suspicion.held || suspicion.isConflict;
  return intoLedger(ports, operation, { ...suspicion, state: held ? "held" : "open" }, [
    { kind: "mitigate", lane: brokerLane(operation.data.broker), held },
  ]);
}

/** Writes what a user gives up into the ledger: nobody deletes it, and nobody forgets that it may be there (E10-29). */
export async function abandonToLedger(
  ports: RunPorts,
  operation: InstanceOperation,
  left: Pick<Suspicion, "instance" | "binding" | "plan" | "reason" | "isConflict">,
): Promise<string> {
  return intoLedger(ports, operation, { ...left, mayComeLate: false, state: "abandoned" }, []);
}

async function intoLedger(
  ports: RunPorts,
  operation: InstanceOperation,
  suspicion: Omit<Suspicion, "held"> & Pick<OrphanData, "state">,
  accept: readonly TypedNewOperation<OrphanShape>[],
): Promise<string> {
  const { broker, offering } = operation.data;
  const key = keys.orphan(broker, suspicion.instance, suspicion.binding);
  const ref = instanceRef(operation.key);
  const data: OrphanData = {
    broker,
    space: ref?.space ?? "",
    instance: ref?.name ?? operation.key,
    instanceOsbId: suspicion.instance,
    bindingOsbId: suspicion.binding,
    offering,
    plan: suspicion.plan,
    operation: operation.id,
    reason: suspicion.reason,
    suspectedAt: ports.journal().now(),
    mayComeLate: suspicion.mayComeLate,
    isConflict: suspicion.isConflict,
    state: suspicion.state,
    tries: 0,
    lastAnswer: null,
    endedAt: null,
    endedBy: null,
    endReason: null,
  };
  const decide = orphanRecords.decide((row) => {
    if (row !== undefined && row.data.endedAt === null) return { result: null };
    if (row?.data.state === "dismissed" && suspicion.keepsDismissed === true) return { result: null };
    return {
      result: null,
      change: {
        data,
        labels: orphanLabels(data),
        entries: [{ kind: "orphan-suspected", payload: { reason: data.reason, operation: data.operation } }],
        accept,
        gone: false,
      },
    };
  });
  await operation.transact(`orphan ${suspicion.binding ?? suspicion.instance}`, key, decide);
  return key;
}

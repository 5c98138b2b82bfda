import { BrokerError } from "@osbert/protocol";
import { instanceData } from "../records/instance-record.js";
import type { InstanceOperation } from "../records/instance-resource.js";
import type { RunPorts } from "./run-ports.js";

/**
 * That the revision an instance was accepted with is there for as long as the instance is. The order of effects: the instance is committed
 * with its revision, then this is asked, then its answer is committed, then the author's function is called. Whoever removes a revision looks
 * for instances before; what it may have missed, because the request was judged by a catalog that was old, is refused here, where nothing was
 * done yet. A later attempt does not ask again: something may have been done by then, and what was kept once stays for the instance.
 */
export async function checkKept(
  { judge }: RunPorts,
  operation: InstanceOperation<"provision" | "update">,
  revision: string | null,
  acceptedAt: number,
): Promise<void> {
  const { id, data } = operation;
  if (judge === undefined || revision === null || data.keptFor === id) return;
  const refusal = await judge.accepted(data.serviceId, revision, acceptedAt);
  if (refusal !== null) throw new BrokerError(refusal.code, refusal.why);
  await operation.change((resource) => {
    const present = instanceData(resource);
    return present === undefined ? {} : { data: { ...present, keptFor: id } };
  });
}

import type { OriginatingIdentity } from "@osbert/protocol";
import { instanceData, toDeleting } from "../records/instance-record.js";
import type { InstanceResource } from "../records/instance-resource.js";
import { laneOf } from "../records/lane.js";
import { instanceOperation, someBindingOperation } from "../records/open-operations.js";
import { concurrencyError, mustWait } from "./concurrency.js";
import { accepted, type Decision, refused } from "./decision.js";

/** What a platform says when it deletes an instance or a binding. */
export interface DeleteRequest {
  readonly serviceId: string;
  readonly planId: string;
}

export interface DeprovisionFacts {
  /** `null`: the broker itself asks, to undo. */
  readonly request: DeleteRequest | null;
  /** Bindings that are left go with the instance. */
  readonly cascade: boolean;
  readonly identity: OriginatingIdentity | null;
  readonly deadlineMs: number;
}

/** DELETE /v2/service_instances/:id. B3: during a create it is accepted; the create is cancelled and undone. */
export function decideDeprovision(resource: InstanceResource | undefined, facts: DeprovisionFacts): Decision {
  const { request, cascade, identity, deadlineMs } = facts;
  const data = instanceData(resource);
  if (data === undefined || data.phase === "gone") return { kind: "gone" };
  if (request !== null && request.serviceId !== data.serviceId)
    return refused("bad-request", "service_id is not the service of this instance");
  const running = instanceOperation(resource);
  if (running?.kind === "deprovision") return { kind: "repeated", operation: running.id };
  if (running !== undefined && running.kind !== "provision")
    return mustWait(concurrencyError.instanceBusy(running.kind));
  if (someBindingOperation(resource) !== undefined) return mustWait(concurrencyError.someBindingBusy());
  if (data.bindings > 0 && !cascade) {
    const left = data.bindings === 1 ? "1 binding is" : `${data.bindings} bindings are`;
    return refused("unprocessable", `${left} left; delete the instance's bindings first`);
  }
  return accepted({
    cancel: running === undefined ? [] : [{ operation: running.id, reason: "deleted while it was being provisioned" }],
    data: toDeleting(data),
    accept: [{ kind: "deprovision", lane: laneOf(data.serviceId), input: { identity }, deadlineMs }],
  });
}

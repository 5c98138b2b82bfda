import type { OriginatingIdentity } from "@osbert/protocol";
import { bindingPart, bindingRecord, bindingToDeleting } from "../records/binding-record.js";
import { instanceData } from "../records/instance-record.js";
import { type InstanceResource, instanceResource } from "../records/instance-resource.js";
import { laneOf } from "../records/lane.js";
import { bindingOperation, instanceOperation, isBusy } from "../records/open-operations.js";
import { undoing } from "../records/undo.js";
import { concurrencyError, mustWait } from "./concurrency.js";
import { accepted, type Decision, refused } from "./decision.js";
import type { DeleteRequest } from "./deprovision.js";

export interface UnbindFacts {
  readonly binding: string;
  /** `null`: the broker itself asks, to undo. */
  readonly request: DeleteRequest | null;
  readonly identity: OriginatingIdentity | null;
  readonly deadlineMs: number;
}

/** DELETE …/service_bindings/:id. During a bind it is accepted; the bind is cancelled and undone. */
export function decideUnbind(resource: InstanceResource | undefined, facts: UnbindFacts): Decision {
  const { binding, request, identity, deadlineMs } = facts;
  const data = instanceData(resource);
  const existing = bindingRecord(resource, binding);
  if (data === undefined || existing === undefined) return { kind: "gone" };
  if (request !== null && request.serviceId !== data.serviceId) {
    return refused("bad-request", "service_id is not the service of this instance");
  }
  const part = bindingPart(binding);
  const running = bindingOperation(resource, part);
  if (running?.kind === "unbind") return { kind: "repeated", operation: running.id };
  const onInstance = instanceOperation(resource);
  if (onInstance !== undefined) return mustWait(concurrencyError.instanceBusy(onInstance.kind));
  // What a bind that is cancelled here has recorded is needed to undo it.
  const undo = undoing(existing.undo, running?.steps ?? []);
  // Behind the bind that it cancels, or whatever else has not ended yet: alone, so that it is over before it is undone.
  const mode = isBusy(resource, part) ? "exclusive" : "shared";
  return accepted({
    cancel: running === undefined ? [] : [{ operation: running.id, reason: "deleted while it was being bound" }],
    parts: instanceResource.part(part, bindingToDeleting(existing, { undo })),
    accept: [{ kind: "unbind", part, mode, lane: laneOf(data.serviceId), input: { identity }, deadlineMs }],
  });
}

import type { Json, Resource } from "@osbert/journal";
import type { OriginatingIdentity } from "@osbert/protocol";
import { instanceData } from "../records/instance-record.js";
import { laneOf } from "../records/lane.js";
import { doing, instanceOperation, someBindingOperation } from "../records/open-operations.js";
import type { DeleteAsk } from "../requests/asks.js";
import { accepted, refused, type Verdict } from "./decision.js";

export interface DeprovisionMatter {
  /** `null`: the broker itself asks, to undo. */
  readonly ask: DeleteAsk | null;
  /** Bindings that are left go with the instance. */
  readonly cascade: boolean;
  readonly identity: OriginatingIdentity | null;
  readonly deadlineMs: number;
}

/** DELETE /v2/service_instances/:id. B3: during a create it is accepted; the create is cancelled and undone. */
export function decideDeprovision(resource: Resource | undefined, matter: DeprovisionMatter): Verdict {
  const { ask, cascade, identity, deadlineMs } = matter;
  const data = instanceData(resource);
  if (data === undefined || data.phase === "gone") return { kind: "gone" };
  if (ask !== null && ask.serviceId !== data.serviceId)
    return refused("bad-request", "service_id is not the service of this instance");
  const running = instanceOperation(resource);
  if (running?.kind === "deprovision") return { kind: "repeated", operation: running.id };
  if (running !== undefined && running.kind !== "provision") {
    return refused("concurrency", `the instance ${doing(running.kind)}; ask again when that is over`);
  }
  if (someBindingOperation(resource) !== undefined)
    return refused("concurrency", "a binding of the instance is being changed; ask again when that is over");
  if (data.bindings > 0 && !cascade) {
    const left = data.bindings === 1 ? "1 binding is" : `${data.bindings} bindings are`;
    return refused("unprocessable", `${left} left; delete the instance's bindings first`);
  }
  // An earlier deprovision may have been told to stop, and not have ended yet: what was before it is what was before this one.
  const phaseBefore = data.phase === "deleting" ? data.phaseBefore : data.phase === "ready" ? "ready" : "failed";
  const input = { identity } as unknown as Json;
  return accepted(
    {
      data: { ...data, phase: "deleting", phaseBefore } as unknown as Json,
      accept: [{ kind: "deprovision", lane: laneOf(data.serviceId), input, deadlineMs }],
    },
    running === undefined ? [] : [{ operation: running.id, reason: "deleted while it was being provisioned" }],
  );
}

import type { Json, Resource } from "@osbert/journal";
import type { OriginatingIdentity } from "@osbert/protocol";
import { bindingPart, bindingRecord } from "../records/binding-record.js";
import { instanceData } from "../records/instance-record.js";
import { laneOf } from "../records/lane.js";
import { bindingOperation, doing, instanceOperation, isBusy } from "../records/open-operations.js";
import { undoing } from "../records/undo.js";
import type { DeleteAsk } from "../requests/asks.js";
import { accepted, refused, type Verdict } from "./decision.js";

export interface UnbindMatter {
  readonly binding: string;
  /** `null`: the broker itself asks, to undo. */
  readonly ask: DeleteAsk | null;
  readonly identity: OriginatingIdentity | null;
  readonly deadlineMs: number;
}

/** DELETE …/service_bindings/:id. During a bind it is accepted; the bind is cancelled and undone. */
export function decideUnbind(resource: Resource | undefined, matter: UnbindMatter): Verdict {
  const { binding, ask, identity, deadlineMs } = matter;
  const data = instanceData(resource);
  const existing = bindingRecord(resource, binding);
  if (data === undefined || existing === undefined) return { kind: "gone" };
  if (ask !== null && ask.serviceId !== data.serviceId) {
    return refused("bad-request", "service_id is not the service of this instance");
  }
  const part = bindingPart(binding);
  const running = bindingOperation(resource, part);
  if (running?.kind === "unbind") return { kind: "repeated", operation: running.id };
  const onInstance = instanceOperation(resource);
  if (onInstance !== undefined)
    return refused("concurrency", `the instance ${doing(onInstance.kind)}; ask again when that is over`);
  // Its bind (or unbind) waits so far back that it is not in sight, so that it cannot be cancelled; what is accepted beside it would race it.
  const isOpen = existing.phase === "creating" || existing.phase === "deleting";
  if (running === undefined && isOpen && (resource?.queued ?? 0) > 0)
    return refused("concurrency", "many bindings of the instance are being changed; ask again when some are done");
  // What a bind that is cancelled here has recorded is needed to undo it.
  const undo = undoing(existing.undo, running?.steps ?? []);
  // An earlier unbind may have been told to stop, and not have ended yet: what was before it is what was before this one.
  const phaseBefore =
    existing.phase === "deleting" ? existing.phaseBefore : existing.phase === "ready" ? "ready" : "failed";
  // Behind the bind that it cancels, or whatever else has not ended yet: alone, so that it is over before it is undone.
  const mode = isBusy(resource, part) ? "exclusive" : "shared";
  const input = { identity } as unknown as Json;
  return accepted(
    {
      parts: { [part]: { ...existing, phase: "deleting", phaseBefore, undo } as unknown as Json },
      accept: [{ kind: "unbind", part, mode, lane: laneOf(data.serviceId), input, deadlineMs }],
    },
    running === undefined ? [] : [{ operation: running.id, reason: "deleted while it was being bound" }],
  );
}

import type { Cancellation, Json, Resource } from "@osbert/journal";
import { bindingPart, bindingRecord } from "../records/binding-record.js";
import type { Force } from "../records/forced-result.js";
import { type InstanceData, instanceData, instancePart } from "../records/instance-record.js";
import { laneOf } from "../records/lane.js";
import { accepted, refused, type Verdict } from "./decision.js";

/** Forgets an instance without calling the author's functions. What runs has to be ended first, so that nothing writes after the end. */
export function decidePurge(resource: Resource | undefined): Verdict {
  const data = instanceData(resource);
  if (resource === undefined || data === undefined || data.phase === "gone")
    return refused("not-found", "there is no such instance");
  const busy = openOperation(resource);
  if (busy !== null) return busy;
  return accepted({
    data: { ...data, phase: "gone", bindings: 0, updating: null } as unknown as Json,
    parts: { [instancePart]: null },
    labels: {},
    gone: true,
  });
}

/**
 * Some of the instance's bindings. `closing`: the instance itself follows; from here on it takes no new ones. Killed in between, it
 * is as one that is to be deleted, which a platform can do, too.
 */
export function decidePurgeBindings(
  resource: Resource | undefined,
  parts: readonly string[],
  closing: boolean,
): Verdict {
  const data = instanceData(resource);
  if (resource === undefined || data === undefined || data.phase === "gone")
    return refused("not-found", "there is no such instance");
  const busy = openOperation(resource);
  if (busy !== null) return busy;
  const bindings = Math.max(0, data.bindings - parts.filter((part) => isCounted(resource, part)).length);
  const phase = closing ? { phase: "deleting", phaseBefore: phaseBefore(data) } : {};
  return accepted({
    data: { ...data, ...phase, bindings } as unknown as Json,
    parts: Object.fromEntries(parts.map((part) => [part, null])),
  });
}

export function decidePurgeBinding(resource: Resource | undefined, binding: string): Verdict {
  if (instanceData(resource) === undefined || bindingRecord(resource, binding) === undefined)
    return refused("not-found", "there is no such binding");
  return decidePurgeBindings(resource, [bindingPart(binding)], false);
}

/** Cancels what is open and deprovisions behind it; the functions are called once, and the instance goes whatever comes of them. */
export function decideForceDelete(resource: Resource | undefined, force: Force): Verdict {
  const data = instanceData(resource);
  if (resource === undefined || data === undefined || data.phase === "gone")
    return refused("not-found", "there is no such instance");
  const cancel: readonly Cancellation[] = resource.open
    .filter((operation) => operation.cancel === null)
    .map(({ id }) => ({ operation: id, reason: "an operator deletes the instance by force" }));
  return accepted(
    {
      data: { ...data, phase: "deleting", phaseBefore: phaseBefore(data) } as unknown as Json,
      accept: [
        {
          kind: "deprovision",
          lane: laneOf(data.serviceId),
          input: { identity: null, force } as unknown as Json,
          // Its functions have a time of their own; beyond that there is nothing that could be given up.
          deadlineMs: null,
        },
      ],
    },
    cancel,
  );
}

export function decideCancel(resource: Resource | undefined, operation: string, reason: string): Verdict {
  if (resource === undefined || instanceData(resource) === undefined)
    return refused("not-found", "there is no such instance");
  const open = resource.open.find(({ id }) => id === operation);
  if (open?.cancel != null) return refused("conflict", "the operation was cancelled already and is about to end");
  // Behind those in sight it can be cancelled too; the journal says if it is not there.
  if (open === undefined && resource.queued === 0)
    return refused("conflict", "the operation is not open: it has ended, or never was");
  return accepted({}, [{ operation, reason: `by the operator: ${reason}` }]);
}

/** To go back to, if it comes to that. What is being deleted knows already. */
function phaseBefore(data: InstanceData): InstanceData["phaseBefore"] {
  if (data.phase === "deleting") return data.phaseBefore;
  return data.phase === "ready" ? "ready" : "failed";
}

function openOperation({ open, queued }: Resource): Verdict | null {
  const [first] = open;
  if (first === undefined && queued === 0) return null;
  return refused("conflict", `operation ${first?.id ?? ""} is open; cancel it first and wait for its end`);
}

/** One that failed was taken out of the count when it did. */
function isCounted(resource: Resource, part: string): boolean {
  const record = resource.parts.get(part) as { readonly phase?: string } | undefined;
  return record !== undefined && record.phase !== "failed";
}

import { type BindingPart, bindingPart, bindingRecord } from "../records/binding-record.js";
import { inPhase, instanceData, instancePart, toDeleting } from "../records/instance-record.js";
import type { InstanceResource } from "../records/instance-resource.js";
import { accepted, type Decision, refused } from "./decision.js";

/** Forgets an instance without calling the author's functions. What runs has to be ended first, so that nothing writes after the end. */
export function decidePurge(resource: InstanceResource | undefined): Decision {
  const data = instanceData(resource);
  if (resource === undefined || data === undefined || data.phase === "gone")
    return refused("not-found", "there is no such instance");
  const busy = openOperation(resource);
  if (busy !== null) return busy;
  return accepted({
    data: inPhase(data, { phase: "gone" }, { bindings: 0 }),
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
  resource: InstanceResource | undefined,
  parts: readonly BindingPart[],
  closing: boolean,
): Decision {
  const data = instanceData(resource);
  if (resource === undefined || data === undefined || data.phase === "gone")
    return refused("not-found", "there is no such instance");
  const busy = openOperation(resource);
  if (busy !== null) return busy;
  const bindings = Math.max(0, data.bindings - parts.filter((part) => isCounted(resource, part)).length);
  return accepted({
    data: { ...(closing ? toDeleting(data) : data), bindings },
    parts: Object.fromEntries(parts.map((part) => [part, null])),
  });
}

export function decidePurgeBinding(resource: InstanceResource | undefined, binding: string): Decision {
  if (instanceData(resource) === undefined || bindingRecord(resource, binding) === undefined)
    return refused("not-found", "there is no such binding");
  return decidePurgeBindings(resource, [bindingPart(binding)], false);
}

function openOperation({ open, queued }: InstanceResource): Decision | null {
  const [first] = open;
  if (first === undefined && queued === 0) return null;
  return refused("conflict", `operation ${first?.id ?? ""} is open; cancel it first and wait for its end`);
}

/** One that failed was taken out of the count when it did. */
function isCounted(resource: InstanceResource, part: BindingPart): boolean {
  const record = resource.parts.get(part);
  return record !== undefined && record.phase !== "failed";
}

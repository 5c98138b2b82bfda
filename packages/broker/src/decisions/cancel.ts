import { instanceData } from "../records/instance-record.js";
import type { InstanceResource } from "../records/instance-resource.js";
import { accepted, type Decision, refused } from "./decision.js";

/** Asks for the end of an open operation. It ends within seconds; the platform is told the reason. */
export function decideCancel(resource: InstanceResource | undefined, operation: string, reason: string): Decision {
  if (resource === undefined || instanceData(resource) === undefined)
    return refused("not-found", "there is no such instance");
  const open = resource.open.find(({ id }) => id === operation);
  if (open?.cancel != null) return refused("conflict", "the operation was cancelled already and is about to end");
  // Behind those in sight it can be cancelled too; the journal says if it is not there.
  if (open === undefined && resource.queued === 0)
    return refused("conflict", "the operation is not open: it has ended, or never was");
  return accepted({ cancel: [{ operation, reason: `by the operator: ${reason}` }] });
}

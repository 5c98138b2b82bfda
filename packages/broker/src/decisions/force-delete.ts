import type { Force } from "../records/forced-result.js";
import { instanceData, toDeleting } from "../records/instance-record.js";
import type { InstanceResource } from "../records/instance-resource.js";
import { laneOf } from "../records/lane.js";
import { accepted, type Decision, refused } from "./decision.js";

/** Cancels what is open and deprovisions behind it; the functions are called once, and the instance goes whatever comes of them. */
export function decideForceDelete(resource: InstanceResource | undefined, force: Force): Decision {
  const data = instanceData(resource);
  if (resource === undefined || data === undefined || data.phase === "gone")
    return refused("not-found", "there is no such instance");
  return accepted({
    cancel: { others: true, reason: "an operator deletes the instance by force" },
    data: toDeleting(data),
    accept: [
      {
        kind: "deprovision",
        lane: laneOf(data.serviceId),
        input: { identity: null, force },
        // Its functions have a time of their own; beyond that there is nothing that could be given up.
        deadlineMs: null,
      },
    ],
  });
}

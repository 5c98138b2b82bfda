import { instanceLabels } from "../records/instance-labels.js";
import { type InstanceData, instances } from "../records/instance-record.js";
import { cancelReasons } from "./cancel-reasons.js";
import { leaveBindings } from "./leave-bindings.js";
import { type InstanceChange, type InstanceResource, queueOf } from "./queue-state.js";
import { raiseRevision } from "./revision.js";

/**
 * The instance's broker, which was at this URL, is removed by force (E10-13): nothing is asked of it any more, and all that is known of the instance stays, so that it can
 * be adopted by whoever registers the broker again.
 */
export function unmanage(
  resource: InstanceResource,
  by: string,
  leftAtUrl: string,
  now: number,
): InstanceChange | undefined {
  const { data, open } = resource;
  if (data.phase === "gone" || data.phase === "abandoned") return undefined;
  const { parts, bindings } = leaveBindings(resource, queueOf(resource), cancelReasons.unmanaged);
  // The reasons to be held go with what they held; so does what a delete had stopped.
  const left: InstanceData = { ...data, phase: "unmanaged", leftAtUrl, bindings, held: {} };
  return {
    data: raiseRevision(left, now, by, `the broker ${data.broker} was removed`),
    labels: instanceLabels(left),
    parts: { ...parts, ...instances.part("interrupted", null) },
    entries: [{ kind: "unmanaged", payload: { broker: data.broker } }],
    ...(open.length > 0 && { cancel: { others: true, reason: cancelReasons.unmanaged } }),
  };
}

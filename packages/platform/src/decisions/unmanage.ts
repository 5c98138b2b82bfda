import { instanceLabels } from "../records/instance-labels.js";
import type { InstanceData } from "../records/instance-record.js";
import { cancelReasons } from "./cancel-reasons.js";
import type { InstanceChange, InstanceResource } from "./queue-state.js";
import { raiseRevision } from "./revision.js";

/**
 * The instance's broker is removed by force (E10-13): nothing is asked of it any more, and all that is known of the instance stays, so that it can
 * be adopted by whoever registers the broker again.
 */
export function unmanage({ data, open }: InstanceResource, by: string, now: number): InstanceChange | undefined {
  if (data.phase === "unmanaged" || data.phase === "gone" || data.phase === "abandoned") return undefined;
  const left: InstanceData = { ...data, phase: "unmanaged" };
  return {
    data: raiseRevision(left, now, by, `the broker ${data.broker} was removed`),
    labels: instanceLabels(left),
    entries: [{ kind: "unmanaged", payload: { broker: data.broker } }],
    ...(open.length > 0 && { cancel: { others: true, reason: cancelReasons.unmanaged } }),
  };
}

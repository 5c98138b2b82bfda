import { instanceLabels } from "../records/instance-labels.js";
import type { InstanceData } from "../records/instance-record.js";
import { correctFailures } from "./correct-failures.js";
import { dependents } from "./dependence.js";
import { touchedPaths } from "./difference.js";
import { applyText } from "./project.js";
import { type QueuedOperation, withHold, withoutHold } from "./queue-state.js";
import {
  detailsOf,
  type Ending,
  endedQuietly,
  endingOf,
  failureOf,
  isOver,
  isUncertain,
  type Settle,
  settled,
  withFailure,
} from "./settle.js";

/** The end of an update, a refresh or an upgrade, with the policy for those that failed (E5). */
export const settleUpdate: Settle<"update"> = (resource, operation, outcome) => {
  const ending = endingOf(resource, operation, outcome);
  const { data, brief, holds } = ending;
  if (outcome.kind === "cancelled" || isOver(data)) return endedQuietly(resource, operation);
  if (outcome.kind === "succeeded") {
    const { dashboardUrl, text } = outcome.result;
    // What was sent says more than the brief, which is bounded. A refresh says nothing new.
    const said = brief.op === "refresh" ? [] : touchedPaths(text);
    const { failures, ...corrected } = correctFailures(data, said, ending, !data.usable);
    // A refused delete that left it unusable holds all that was queued, and is no failure that could be corrected.
    const freed = withoutHold(
      corrected.holds,
      (reason) => !data.usable && reason.kind === "failure" && reason.operation === data.lastDelete?.operation,
    );
    const updated: InstanceData = {
      ...data,
      applied: data.applied === null ? null : applyText(data.applied, text),
      // P-UPD-10: a broker that says nothing of it leaves the one before.
      dashboardUrl: dashboardUrl ?? data.dashboardUrl,
      usable: true,
      uncertainSince: null,
      failures,
    };
    return settled(
      ending,
      operation,
      { data: updated, holds: freed, summary: `${brief.op} succeeded: ${brief.summary}` },
      { ...(text.plan !== null && { labels: instanceLabels(updated) }) },
    );
  }
  const failure = failureOf(operation, ending, outcome);
  const details = detailsOf(outcome);
  const usable = details.usable ?? data.usable;
  const failed: InstanceData = {
    ...data,
    usable,
    failures: withFailure(data, failure),
    uncertainSince: isUncertain(outcome) ? { operation: operation.id, at: ending.at } : data.uncertainSince,
  };
  const message = `${brief.op} failed: ${failure.message}`;
  return settled(ending, operation, {
    data: failed,
    holds: withHold(holds, toHold(ending, operation.id, usable), { kind: "failure", operation: operation.id, message }),
    summary: message,
  });
};

/** What waits for someone after a failure: by the policy, and everything but a delete if the instance cannot be used any more. */
function toHold({ data, brief, queue }: Ending, operation: string, usable: boolean): readonly string[] {
  const { onFailure } = data.policy;
  const movable = queue.filter(({ started, cancelled }) => !started && !cancelled);
  const isHoldable = ({ kind }: QueuedOperation) => kind !== "delete" && kind !== "unbind";
  if (!usable) return idsOf(movable.filter(isHoldable));
  if (onFailure === "continue") return [];
  if (onFailure === "halt") return idsOf(movable.filter(isHoldable));
  return idsOf(dependents({ operation, paths: brief.paths, plan: brief.plan }, movable));
}

function idsOf(operations: readonly QueuedOperation[]): readonly string[] {
  return operations.map(({ id }) => id);
}

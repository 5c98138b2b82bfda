import { instanceLabels } from "../records/instance-labels.js";
import type { InstanceData } from "../records/instance-record.js";
import { adoptedState } from "./project.js";
import { withHold, withoutHold } from "./queue-state.js";
import { endedQuietly, endingOf, failureOf, isOver, isUncertain, type Settle, settled, withFailure } from "./settle.js";

/** The end of a create. What is queued behind one that failed assumed an instance that does not exist: it is held (E5, E10-3). */
export const settleCreate: Settle<"create"> = (resource, operation, outcome) => {
  const ending = endingOf(resource, operation, outcome);
  const { data, queue, holds } = ending;
  if (outcome.kind === "cancelled" || isOver(data))
    return {
      ...endedQuietly(resource, operation, { data: { adoptingId: null } }),
      // The claim is over, and with it what told others of it.
      ...(operation.kind === "adopt" && { labels: instanceLabels({ ...data, adoptingId: null }) }),
    };
  if (outcome.kind === "succeeded") {
    const { osbId, dashboardUrl, applied } = outcome.result;
    const failed = new Set(data.failures.map((failure) => failure.operation));
    const known = ownAgain(data);
    // An adoption hears nothing of these: of what was managed here before, what is known of it stays (E10-13).
    const isAsBefore = operation.kind === "adopt" && data.osbId === osbId;
    const ready = {
      ...known,
      osbId,
      applied: isAsBefore ? adoptedState(data.applied, applied) : applied,
      dashboardUrl: dashboardUrl ?? (isAsBefore ? data.dashboardUrl : null),
      usable: true,
      uncertainSince: isAsBefore ? data.uncertainSince : null,
      failures: [],
      // If its broker is removed meanwhile, it does not end like this.
      phase: "ready" as const,
      ...(operation.kind === "adopt" && { adoptedId: osbId }),
      ...(data.adoptingId != null && { adoptingId: null }),
    };
    const freed = withoutHold(holds, (reason) => reason.kind === "failure" && failed.has(reason.operation));
    return settled(
      ending,
      operation,
      { data: ready, holds: freed, summary: `${ending.brief.op} succeeded` },
      { labels: instanceLabels(ready) },
    );
  }
  const failure = failureOf(operation, ending, outcome);
  // A delete, and the unbinds that it waits for, need no instance.
  const behind = queue
    .filter(({ kind, started }) => kind !== "delete" && kind !== "unbind" && !started)
    .map(({ id }) => id);
  const message = `${ending.brief.op} failed: ${failure.message}`;
  const failed = {
    ...data,
    adoptingId: null,
    failures: withFailure(data, { ...failure, paths: ["*"] }),
    uncertainSince: isUncertain(outcome) ? { operation: operation.id, at: ending.at } : data.uncertainSince,
  };
  return settled(
    ending,
    operation,
    {
      data: failed,
      holds: withHold(holds, behind, { kind: "failure", operation: operation.id, message }),
      summary: message,
    },
    { labels: instanceLabels(failed) },
  );
};

/** If it was answered 409, it has turned out to be its own. It is managed again. Most are neither, and not copied for that. */
function ownAgain(data: InstanceData): InstanceData {
  if (data.conflictId === undefined && data.leftAtUrl === undefined) return data;
  const { conflictId: _conflictId, leftAtUrl: _leftAtUrl, ...known } = data;
  return known;
}

import type { FailureClass } from "../records/call-outcome.js";
import { type InstanceData, instances, type RefusedDelete } from "../records/instance-record.js";
import { cancelReasons } from "./cancel-reasons.js";
import { goneOnWith } from "./interrupted.js";
import { withHold, withoutHold } from "./queue-state.js";
import { detailsOf, endedQuietly, endingOf, failureOf, isOver, type Settle, settled } from "./settle.js";

/**
 * The end of a delete. Done, it drops all that waited behind it. Refused, everything is as it was before: what it held goes on in its old
 * order, the phase is that of before, and `lastDelete` says who wanted it and why it was refused (E5).
 */
export const settleDelete: Settle<"delete"> = (resource, operation, outcome) => {
  const ending = endingOf(resource, operation, outcome);
  const { data, brief } = ending;
  if (outcome.kind === "cancelled" || isOver(data)) return endedQuietly(resource, operation);
  if (outcome.kind === "succeeded") {
    const phase = brief.mode === "abandon" ? ("abandoned" as const) : ("gone" as const);
    const gone: InstanceData = { ...data, phase, bindings: 0, lastDelete: null, failures: [], lock: null };
    return {
      ...settled(
        { ...ending, queue: [] },
        operation,
        { data: gone, holds: {}, summary: `it is ${phase}` },
        { parts: instances.part("interrupted", null) },
      ),
      cancel: { others: true, reason: cancelReasons.deleted },
      labels: {},
      gone: true,
    };
  }
  const freed = withoutHold(ending.holds, ({ kind }) => kind === "delete");
  const failure = failureOf(operation, ending, outcome);
  const details = detailsOf(outcome);
  const lastDelete: RefusedDelete = {
    operation: operation.id,
    by: brief.by,
    at: ending.at,
    message: failure.message,
    how: details.class !== undefined && begun.has(details.class) ? "failed" : "rejected",
  };
  const kept = { ...data, lastDelete, usable: details.usable ?? data.usable };
  const summary = `the delete was refused: ${failure.message}`;
  if (kept.usable && (data.applied !== null || lastDelete.how === "rejected"))
    return settled(ending, operation, { data: kept, holds: freed, summary }, goneOnWith(resource, kept));
  // The broker has stopped the create for it, and nobody knows what is left; or it says that what is left cannot be used: what is queued waits.
  const behind = ending.queue
    .filter(({ kind, cancelled }) => kind !== "delete" && kind !== "unbind" && !cancelled)
    .map(({ id }) => id);
  const reason = { kind: "failure" as const, operation: operation.id, message: summary };
  const holds = withHold(freed, behind, reason);
  const stopped =
    data.applied === null ? { parts: instances.part("interrupted", null) } : goneOnWith(resource, kept, reason);
  return settled(ending, operation, { data: kept, holds, summary }, stopped);
};

/** The broker has begun with it, or may have: nobody knows what is left. */
const begun: ReadonlySet<FailureClass> = new Set([
  "operation failed",
  "operation timed out",
  "operation lost",
  "unusable answer",
  "unknown",
]);

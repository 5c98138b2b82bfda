import { type BindingRecord, instances } from "../records/instance-record.js";
import { bindingPart } from "./binding-part.js";
import { cancelReasons } from "./cancel-reasons.js";
import { goneOnWith } from "./interrupted.js";
import { leavesBindings, unended } from "./leave-bindings.js";
import { withoutHold } from "./queue-state.js";
import { endedQuietly, endingOf, failureOf, holdingNamed, isOver, type Settle, settled } from "./settle.js";
import { unwaiveHolds } from "./waived-holds.js";

/**
 * The end of an unbind. One that is refused leaves the binding as it was, with its credentials (E10-46), and calls off the delete that waited
 * for it: an instance with bindings must not be deleted (P-DEL-01).
 */
export const settleUnbind: Settle<"unbind"> = (resource, operation, outcome) => {
  const ending = endingOf(resource, operation, outcome);
  const { data, brief, holds, queue } = ending;
  const part = bindingPart(operation.part);
  const record = part === undefined ? undefined : resource.parts.get(part);
  if (part === undefined || record === undefined || isOver(data)) return endedQuietly(resource, operation);
  if (outcome.kind === "succeeded") {
    return settled(
      ending,
      operation,
      {
        // One whose bind failed meanwhile was taken off the count with that.
        data: record.phase === "failed" ? data : { ...data, bindings: Math.max(0, data.bindings - 1) },
        holds,
        summary: `${brief.op} succeeded: ${brief.summary}`,
      },
      { parts: instances.part(part, null) },
    );
  }
  if (leavesBindings(outcome)) return endedQuietly(resource, operation);
  if (outcome.kind === "cancelled")
    return endedQuietly(resource, operation, { parts: instances.part(part, unended(record)) });
  const { message } = failureOf(operation, ending, outcome);
  const kept: BindingRecord = { ...record, phase: "unbind-rejected", message };
  const parts = instances.part(part, kept);
  const summary = `${brief.op} failed: ${message}`;
  const waiters = holdingNamed(ending, operation.id, summary);
  const waiting = queue.find(({ kind, started, cancelled }) => kind === "delete" && !started && !cancelled);
  if (waiting === undefined || waiting.brief.mode === "abandon")
    return settled(ending, operation, { data, holds: waiters, summary }, { parts });
  const lastDelete = {
    operation: waiting.id,
    by: waiting.brief.by,
    at: ending.at,
    message: `the binding ${brief.binding ?? ""} could not be unbound: ${message}`,
    how: "blocked" as const,
  };
  const freed = withoutHold(waiters, ({ kind }, id) => kind === "delete" || id === waiting.id);
  const resumed = goneOnWith(resource, data);
  const left = queue.filter(({ id }) => id !== waiting.id);
  return settled(
    { ...ending, queue: left },
    operation,
    { ...unwaiveHolds({ ...data, lastDelete }, freed, left), summary },
    {
      ...resumed,
      parts: { ...resumed.parts, ...parts },
      cancel: [{ operation: waiting.id, reason: cancelReasons.bindingFailed }],
    },
  );
};

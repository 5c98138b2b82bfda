import type { OpenOperation, Outcome as OperationOutcome } from "@osbert/journal";
import type { LastOperationResponse } from "@osbert/protocol";
import { doing } from "../instances/busy.js";
import type { EndedOperation } from "../instances/instance-record.js";
import { type ForcedResult, passedOverText } from "../operations/calls.js";
import type { Verb } from "../service/verbs.js";

/** What `last_operation` says of an operation that has not ended. */
export function inProgress(
  { kind, description }: Pick<OpenOperation, "kind" | "description">,
  isPaused = false,
): LastOperationResponse {
  if (isPaused) return { state: "in progress", description: `${kind} waits: the service is paused by its operator` };
  return { state: "in progress", description: said(description) ?? `the resource ${doing(kind)}` };
}

/**
 * A success needs no words: what the author said last was about progress, and platforms would show it for ever. Only what was passed over
 * by force is told.
 */
export function ended(operation: EndedOperation): LastOperationResponse {
  if (operation.state === "succeeded") {
    const { passedOver } = operation;
    return { state: "succeeded", ...(passedOver !== undefined && { description: passedOver }) };
  }
  const { state, verb, description, instanceUsable, updateRepeatable } = operation;
  return {
    state,
    description,
    // ERR-04, ERR-05: only where they may stand.
    ...(instanceUsable !== undefined &&
      (verb === "update" || verb === "deprovision") && { instance_usable: instanceUsable }),
    ...(updateRepeatable !== undefined && verb === "update" && { update_repeatable: updateRepeatable }),
  };
}

/** LOP-03: a description is not empty; an author's may be. */
function said(description: string | null): string | null {
  return description === null || description.trim() === "" ? null : description;
}

/** How an operation's end is kept. Pure. */
export function endedOperation(id: string, verb: Verb, outcome: OperationOutcome): EndedOperation {
  if (outcome.kind === "succeeded") {
    const passedOver = verb === "deprovision" ? passedOverText(outcome.result as ForcedResult | null) : null;
    return { id, verb, state: "succeeded", ...(passedOver !== null && { passedOver }) };
  }
  if (outcome.kind === "cancelled")
    return { id, verb, state: "failed", description: `${verb} was cancelled: ${outcome.reason}` };
  const details = (outcome.error.details ?? {}) as { instanceUsable?: boolean; updateRepeatable?: boolean };
  return {
    id,
    verb,
    state: "failed",
    description: outcome.error.message === "" ? `${verb} failed` : outcome.error.message,
    ...(typeof details.instanceUsable === "boolean" && { instanceUsable: details.instanceUsable }),
    ...(typeof details.updateRepeatable === "boolean" && { updateRepeatable: details.updateRepeatable }),
  };
}

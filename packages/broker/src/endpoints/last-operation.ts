import type { OpenOperation } from "@osbert/journal";
import type { LastOperationResponse } from "@osbert/protocol";
import type { EndedOperation } from "../records/ended-operation.js";

import { doing } from "../records/open-operations.js";

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

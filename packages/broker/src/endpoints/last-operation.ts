import type { ListedOperation } from "@osbert/journal";
import type { LastOperationResponse } from "@osbert/protocol";
import type { Answer } from "@osbert/server";
import { doing } from "../decisions/concurrency.js";
import { type EndedOperation, endedOperation } from "../records/ended-operation.js";
import type { Verb } from "../service/verb.js";
import { answer, inProgressAnswer } from "./answer.js";
import type { EndpointPorts } from "./endpoint.js";

/** What `last_operation` says of an operation that has not ended. */
export function inProgress({ kind, description, state }: ListedOperation): LastOperationResponse {
  if (state === "paused")
    return { state: "in progress", description: `${kind} waits: the service is paused by its operator` };
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

/** What became of an operation that is not the last one, as long as the journal keeps it. */
export async function endedEarlier(
  { journal }: EndpointPorts,
  key: string,
  operation: string,
  part: string | null,
): Promise<LastOperationResponse | undefined> {
  const status = await journal.operation(key, operation);
  if (status === undefined || status.part !== part) return undefined;
  if (status.open !== null) return inProgress(status.open);
  return status.outcome === null ? undefined : ended(endedOperation(operation, status.kind as Verb, status.outcome));
}

export function polled(ports: EndpointPorts, body: LastOperationResponse): Answer {
  return body.state === "in progress" ? inProgressAnswer("fetched", body, ports) : answer("fetched", body);
}

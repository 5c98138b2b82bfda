import type { TypedOutcome } from "@osbert/journal";
import type { Verb } from "../service/verb.js";
import { type ForcedResult, passedOverText } from "./forced-result.js";

/** How an operation's end is kept, for those who ask later. */
export type EndedOperation = { readonly id: string; readonly verb: Verb } & (
  | {
      readonly state: "succeeded";
      /** What a forced deletion has passed over, for a person. */
      readonly passedOver?: string;
    }
  | {
      readonly state: "failed";
      readonly description: string;
      readonly instanceUsable?: boolean;
      readonly updateRepeatable?: boolean;
    }
);

export function endedOperation(id: string, verb: Verb, outcome: TypedOutcome<unknown>): EndedOperation {
  if (outcome.kind === "succeeded") {
    const passedOver = verb === "deprovision" ? passedOverText(outcome.result as ForcedResult | null) : null;
    return { id, verb, state: "succeeded", ...(passedOver !== null && { passedOver }) };
  }
  if (outcome.kind === "cancelled")
    return { id, verb, state: "failed", description: cancelledText(verb, outcome.reason) };
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

export function cancelledText(verb: Verb, reason: string): string {
  return `${verb} was cancelled: ${reason}`;
}

import type { BindingRecord } from "../records/instance-record.js";
import { instances } from "../records/instance-record.js";
import { bindingPart } from "./binding-part.js";
import { leavesBindings } from "./leave-bindings.js";
import { endedQuietly, endingOf, failureOf, holdingNamed, isOver, type Settle, settled } from "./settle.js";

/** The end of a bind. Its credentials are in the binding's part already. */
export const settleBind: Settle<"bind"> = (resource, operation, outcome) => {
  const ending = endingOf(resource, operation, outcome);
  const { data, brief, holds } = ending;
  const part = bindingPart(operation.part);
  const record = part === undefined ? undefined : resource.parts.get(part);
  if (part === undefined || record === undefined || isOver(data) || leavesBindings(outcome))
    return endedQuietly(resource, operation);
  if (outcome.kind === "succeeded") {
    const { expiresAt, renewBefore } = outcome.result;
    const bound: BindingRecord = { ...record, phase: "bound", expiresAt, renewBefore, message: null };
    return settled(
      ending,
      operation,
      { data, holds, summary: `${brief.op} succeeded: ${brief.summary}` },
      { parts: instances.part(part, bound) },
    );
  }
  const counted = { ...data, bindings: Math.max(0, data.bindings - 1) };
  if (outcome.kind === "cancelled") {
    // It was never sent: there is nothing to remember.
    return endedQuietly(resource, operation, { data: counted, parts: instances.part(part, null) });
  }
  const { message } = failureOf(operation, ending, outcome);
  const summary = `${brief.op} failed: ${message}`;
  const failed: BindingRecord = { ...record, phase: "failed", answer: null, message };
  return settled(
    ending,
    operation,
    { data: counted, holds: holdingNamed(ending, operation.id, summary), summary },
    { parts: instances.part(part, failed) },
  );
};

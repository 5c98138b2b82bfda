import { type HoldReason, type InstanceData, type InterruptedIntent, instances } from "../records/instance-record.js";
import { brokerLane } from "../records/keys.js";
import type { Desk } from "./desk.js";
import { intentBrief } from "./intent-brief.js";
import type { InstanceChange, InstanceResource, QueuedOperation } from "./queue-state.js";

/** Whose ends need to know what a delete has stopped. */
export const readsInterrupted = ["interrupted"] as const;

/** What a delete stops, kept as it was: the part to write. What was stopped by an earlier delete stays. */
export function interruptedBy(
  { request }: Pick<Desk, "request">,
  ending: readonly QueuedOperation[],
): NonNullable<InstanceChange["parts"]> {
  const stopped = ending.find(({ kind }) => kind === "create" || kind === "adopt" || kind === "update");
  const input = stopped === undefined ? undefined : request.inputs?.get(stopped.id)?.input;
  if (stopped === undefined || input === undefined) return {};
  const { heldFor: _, ...brief } = stopped.brief;
  // The kind of an operation says what it was given.
  const intent = { kind: stopped.kind, input } as InterruptedIntent["intent"];
  return instances.part("interrupted", { intent, brief: { ...brief, resumed: true }, nextOsbId: request.newId });
}

/**
 * Goes on with what a delete had stopped (E5: refused, everything is as it was): in front of all that is queued. Nobody has heard what the broker
 * made of it, so that this is found out first: a create is asked for with the identical request, and so is an update. `heldFor`: it waits for someone.
 */
export function goneOnWith(
  resource: InstanceResource | undefined,
  data: InstanceData,
  heldFor?: HoldReason,
): Pick<InstanceChange, "accept" | "parts"> {
  const interrupted = resource?.parts.get("interrupted");
  if (interrupted === undefined) return {};
  const { intent, nextOsbId } = interrupted;
  const brief = heldFor === undefined ? interrupted.brief : intentBrief({ ...interrupted.brief, heldFor });
  const common = {
    brief,
    held: heldFor !== undefined,
    lane: brokerLane(data.broker),
    place: "front" as const,
  };
  const parts = instances.part("interrupted", null);
  switch (intent.kind) {
    case "create": {
      const { osbId } = data;
      const input = { ...intent.input, osbId: osbId ?? nextOsbId, resumed: osbId !== null };
      return { parts, accept: [{ ...common, kind: "create", input }] };
    }
    case "adopt":
      return { parts, accept: [{ ...common, kind: "adopt", input: intent.input }] };
    case "update":
      return { parts, accept: [{ ...common, kind: "update", input: intent.input }] };
  }
}

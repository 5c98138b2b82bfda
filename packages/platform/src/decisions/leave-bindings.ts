import type { TypedOutcome } from "@osbert/journal";
import { type BindingRecord, type InstanceShape, instances } from "../records/instance-record.js";
import { bindingPart } from "./binding-part.js";
import { cancelReasons } from "./cancel-reasons.js";
import type { InstanceChange, InstanceResource, QueuedOperation } from "./queue-state.js";

/**
 * What is known of bindings when their broker is not asked about them any more. One that was never sent is nowhere, and is forgotten; what the
 * broker may have made, or may have kept, stays with its id. For commits that end all that is open: the ends of binds and unbinds leave the records
 * as they are written here.
 */
export function leaveBindings(
  resource: InstanceResource | undefined,
  queue: readonly QueuedOperation[],
  message: string,
): { readonly parts: NonNullable<InstanceChange["parts"]>; readonly bindings: number } {
  const records = new Map<keyof InstanceShape["parts"], BindingRecord | null>();
  for (const [id, record] of resource?.parts ?? [])
    if (id.startsWith("binding/")) records.set(id, record as BindingRecord);
  const changed: NonNullable<InstanceChange["parts"]>[] = [];
  for (const { kind, part: about, sent } of queue) {
    const part = bindingPart(about);
    const record = part === undefined ? undefined : records.get(part);
    if (part === undefined || record == null) continue;
    const left = kind === "bind" ? leftOfBind(record, sent, message) : leftOfUnbind(record, sent, message);
    records.set(part, left);
    changed.push(instances.part(part, left));
  }
  const bindings = [...records.values()].filter((record) => record !== null && record.phase !== "failed").length;
  return { parts: Object.assign({}, ...changed), bindings };
}

function leftOfBind(record: BindingRecord, sent: boolean, message: string): BindingRecord | null {
  return sent ? { ...record, message: `nobody knows whether it was made: ${message}` } : null;
}

function leftOfUnbind(record: BindingRecord, sent: boolean, message: string): BindingRecord {
  if (!sent) return unended(record);
  return { ...record, phase: "unbind-rejected", message: `nobody knows whether it is there: ${message}` };
}

/** Whether the commit that ended it has said what is left of the binding. */
export function leavesBindings(outcome: TypedOutcome<unknown>): boolean {
  return (
    outcome.kind === "cancelled" &&
    (outcome.reason === cancelReasons.abandoned || outcome.reason === cancelReasons.unmanaged)
  );
}

/** The binding as it was before: its bind may still be under way, or have failed meanwhile. */
export function unended(record: BindingRecord): BindingRecord {
  return record.phase === "unbinding" ? { ...record, phase: record.answer === null ? "binding" : "bound" } : record;
}

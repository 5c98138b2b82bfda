import type { InstanceData } from "../records/instance-record.js";
import { type Holds, type QueuedOperation, withHold } from "./queue-state.js";

/**
 * A delete with its bindings lets go all unbinds before itself, also those that somebody holds. If it comes to nothing before they have begun, they wait
 * for that person again. `weaker`: it takes the place of another delete, which may have done so before.
 */
export function waiveHolds(
  { waivedHolds, ...data }: InstanceData,
  holds: Holds,
  unbinds: readonly QueuedOperation[],
  weaker: QueuedOperation | undefined,
): InstanceData {
  const people = unbinds.flatMap(({ id }) => {
    const reasons = holds[id]?.filter(({ kind }) => kind === "user") ?? [];
    return reasons.length === 0 ? [] : [[id, reasons] as const];
  });
  const waived = { ...(weaker !== undefined && waivedHolds), ...Object.fromEntries(people) };
  return Object.keys(waived).length === 0 ? data : { ...data, waivedHolds: waived };
}

/** The delete has come to nothing: the instance without what it had waived, and the holds with it. */
export function unwaiveHolds(
  { waivedHolds = {}, ...data }: InstanceData,
  holds: Holds,
  queue: readonly QueuedOperation[],
): { readonly data: InstanceData; readonly holds: Holds } {
  const waits = queue.filter(({ started, cancelled }) => !started && !cancelled);
  const again = waits.flatMap(({ id }) => (waivedHolds[id] ?? []).map((reason) => [id, reason] as const));
  return { data, holds: again.reduce((all, [id, reason]) => withHold(all, [id], reason), holds) };
}

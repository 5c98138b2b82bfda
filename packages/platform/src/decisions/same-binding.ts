import type { BindingRecord } from "../records/instance-record.js";
import type { RotationData } from "../records/rotation-record.js";

/*
 * A name is free again when its binding is unbound, and the next one that is given it is another binding: what was planned for the one before, or was
 * to follow that, is no business of it. So bindings are told apart by their ids. What was kept before those were has times that tell it as well: two
 * bindings of one name are never there together.
 */

type Known = Pick<BindingRecord, "id" | "createdAt">;

/** Whether a binding was made to take the place of this very one. */
export function isSuccessorOf(
  other: Pick<BindingRecord, "predecessor" | "predecessorId" | "createdAt">,
  binding: Known & { readonly name: string },
): boolean {
  if (other.predecessor !== binding.name) return false;
  // That of an earlier one of the name was asked for while that was there, and so before this one was.
  return other.predecessorId === undefined ? other.createdAt > binding.createdAt : other.predecessorId === binding.id;
}

/** Whether a rotation was planned for this very binding. `plannedAt`: when its operation was accepted. */
export function isPlannedFor(
  { bindingId }: Pick<RotationData, "bindingId">,
  plannedAt: number,
  binding: Known,
): boolean {
  return bindingId === undefined ? binding.createdAt < plannedAt : binding.id === bindingId;
}

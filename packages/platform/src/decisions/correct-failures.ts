import type { FailedIntent, InstanceData } from "../records/instance-record.js";
import { dependents, isRelated } from "./dependence.js";
import { type Holds, type QueuedOperation, withoutHold } from "./queue-state.js";

/** What failures are after an update has said something about some paths. */
export interface Corrected {
  /** What is left: each with the paths that nobody has corrected yet. */
  readonly failures: readonly FailedIntent[];
  /** Of which something is corrected. */
  readonly touched: ReadonlySet<string>;
  readonly holds: Holds;
}

/**
 * A failure is corrected path by path, and is over when none is left. What it holds is freed with it; before that, what depends on nothing of
 * it any more. `isUsableAgain`: what waited only for that goes on, whichever failure has brought it about.
 */
export function correctFailures(
  { failures, policy, usable }: Pick<InstanceData, "failures" | "policy" | "usable">,
  paths: readonly string[],
  { queue, holds }: { readonly queue: readonly QueuedOperation[]; readonly holds: Holds },
  isUsableAgain = false,
): Corrected {
  const isCorrected = (path: string) => paths.some((own) => isRelated(own, path));
  const now = failures.map((failure) => ({ ...failure, paths: failure.paths.filter((path) => !isCorrected(path)) }));
  const isTouched = ({ paths: left }: FailedIntent, index: number) =>
    left.length < (failures[index]?.paths.length ?? 0);
  const touched = new Set(now.filter(isTouched).map(({ operation }) => operation));
  const isOver = ({ operation, paths: left }: FailedIntent) => touched.has(operation) && left.length === 0;
  const freed = new Map<string, ReadonlySet<string>>();
  for (const failure of now) {
    const { operation, paths: left } = failure;
    if (!touched.has(operation) && !isUsableAgain) continue;
    const held = queue.filter(({ id }) => holds[id]?.some((reason) => isOf(reason, operation)) ?? false);
    // What was made for a plan that never came says so nowhere but in its brief: as long as that plan is missing, nobody is let go.
    const waits = policy.onFailure === "halt" || left.includes("/plan") || !(usable || isUsableAgain);
    const bound = isOver(failure) ? [] : waits ? held : dependents({ operation, paths: left }, held);
    freed.set(operation, new Set(held.filter((one) => !bound.includes(one)).map(({ id }) => id)));
  }
  return {
    failures: now.filter((failure) => !isOver(failure)),
    touched,
    holds: withoutHold(
      holds,
      (reason, id) => reason.kind === "failure" && freed.get(reason.operation)?.has(id) === true,
    ),
  };
}

function isOf(reason: Holds[string][number], operation: string): boolean {
  return reason.kind === "failure" && reason.operation === operation;
}

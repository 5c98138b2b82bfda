import type { QueuedOperation } from "./queue-state.js";

/** What did not come to be, as far as others may have counted on it. */
export interface Missing {
  readonly operation: string;
  readonly paths: readonly string[];
  /** The plan to which it would have led. */
  readonly plan?: string | undefined;
}

/**
 * The operations of a queue that must not go on because something before them did not come to be: those that name it in `after`, write above
 * or below one of its paths, or were made for the plan that it would have brought; and what depends on those. One that writes a failed path
 * itself has the newer will: it goes on, and what is behind it counts on that (E10-6).
 */
export function dependents(missing: Missing, queue: readonly QueuedOperation[]): readonly QueuedOperation[] {
  const operations = new Set([missing.operation]);
  const paths = new Set(missing.paths);
  const plans = new Set(missing.paths.includes("/plan") && missing.plan !== undefined ? [missing.plan] : []);
  const found: QueuedOperation[] = [];
  for (const operation of queue) {
    const { brief } = operation;
    const isUpdate = operation.kind === "update";
    const isNamed = brief.after?.some((id) => operations.has(id)) ?? false;
    const touches = isUpdate && [...paths].some((path) => brief.paths.some((own) => isAboveOrBelow(own, path)));
    const isForPlan =
      isUpdate &&
      brief.plan !== undefined &&
      plans.has(brief.plan) &&
      !brief.paths.includes("/plan") &&
      brief.paths.length > 0;
    if (isNamed || touches || isForPlan) {
      found.push(operation);
      operations.add(operation.id);
      if (isUpdate) for (const path of brief.paths) paths.add(path);
      continue;
    }
    if (!isUpdate) continue;
    for (const path of brief.paths) paths.delete(path);
    if (brief.paths.includes("/plan")) plans.clear();
  }
  return found;
}

/** `*` stands for every path. */
export function isRelated(one: string, other: string): boolean {
  return one === other || isAboveOrBelow(one, other);
}

function isAboveOrBelow(one: string, other: string): boolean {
  if (one === "*" || other === "*") return true;
  return one.startsWith(`${other}/`) || other.startsWith(`${one}/`);
}

import type { Condition, ConditionStatus, ConditionType } from "./flow-record.js";
import type { FlowSettings } from "./flow-settings.js";

/** What a condition is at this moment, before anybody has waited whether it stays so. */
export interface RawCondition {
  readonly type: ConditionType;
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
}

/** What was seen and is not told yet: since when each condition has been other than it is told. In memory alone: who begins anew waits anew. */
export type Pending = ReadonlyMap<string, { readonly status: ConditionStatus; readonly since: number }>;

export interface Settled {
  readonly conditions: readonly Condition[];
  readonly pending: Pending;
  /** When one of those that are pending would be told. `null`: none is. */
  readonly dueAt: number | null;
}

/**
 * From what is seen to what is told. A condition is told to be true at once, and to be anything else only when it has stayed so: but what has
 * just changed does not change back for a while, so that what flaps is told as broken and not as news. Of a flow that was never ready there is
 * nothing to flap, and everything is told at once.
 */
export function settleConditions(
  told: readonly Condition[],
  seen: readonly RawCondition[],
  pending: Pending,
  { debounceMs, hysteresisMs }: Pick<FlowSettings, "debounceMs" | "hysteresisMs">,
  now: number,
  wasReady: boolean,
): Settled {
  const next = new Map<string, { readonly status: ConditionStatus; readonly since: number }>();
  let dueAt: number | null = null;
  const conditions = seen.map((raw): Condition => {
    const before = told.find(({ type }) => type === raw.type);
    if (before === undefined) return { ...raw, since: now };
    if (before.status === raw.status) return { ...raw, ...sinceOf(before, raw.reason, now) };
    const known = pending.get(raw.type);
    const since = known?.status === raw.status ? Math.min(known.since, now) : now;
    // A clock that was set back must not keep what is old for longer.
    const toldAt = Math.min(before.since, now);
    const changeAt = changesAt({ ...before, since: toldAt }, raw, since, debounceMs, hysteresisMs);
    if (!wasReady || changeAt <= now) return { ...raw, since: now };
    next.set(raw.type, { status: raw.status, since });
    dueAt = Math.min(dueAt ?? changeAt, changeAt);
    return before;
  });
  return { conditions, pending: next, dueAt };
}

function changesAt(
  before: Condition,
  raw: RawCondition,
  since: number,
  debounceMs: number,
  hysteresisMs: number,
): number {
  if (raw.status === "True") return Math.max(since, before.since + hysteresisMs);
  return before.status === "True" ? since + debounceMs : since;
}

/** All of them in one. The first that is not true is the reason. */
export function readyOf(conditions: readonly Condition[], before: Condition | undefined, now: number): Condition {
  const worst =
    conditions.find(({ status }) => status === "False") ?? conditions.find(({ status }) => status === "Unknown");
  const raw: RawCondition =
    worst === undefined
      ? { type: "Ready", status: "True", reason: "Flowing", message: "events flow" }
      : { type: "Ready", status: worst.status, reason: worst.reason, message: `${worst.type}: ${worst.message}` };
  return { ...raw, ...(before?.status === raw.status ? sinceOf(before, raw.reason, now) : { since: now }) };
}

/** Of one with the same status as before: since when that is so, and since when for this reason. */
function sinceOf(
  { since, reason, reasonSince }: Condition,
  next: string,
  now: number,
): Pick<Condition, "since" | "reasonSince"> {
  if (reason !== next) return { since, reasonSince: now };
  return { since, ...(reasonSince !== undefined && { reasonSince }) };
}

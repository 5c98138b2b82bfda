import type { OpenOperation, TypedKind, TypedOpenOperation, TypedOutcome } from "@osbert/journal";
import type { CallFailure } from "../records/call-outcome.js";
import type { FailedIntent, InstanceData, InstanceShape, IntentBrief } from "../records/instance-record.js";
import { dependents } from "./dependence.js";
import { expectedOf } from "./desk.js";
import {
  type Holds,
  holdChange,
  holdsOf,
  type InstanceChange,
  type InstanceResource,
  phaseOf,
  type QueuedOperation,
  queueOf,
  withHold,
} from "./queue-state.js";
import { nextRevision, shortened } from "./revision.js";

/**
 * What the end of an operation means for its instance and for what is queued behind it. Pure; part of the commit that ends the operation, so
 * that nobody ever sees one without the other.
 */
export type Settle<Name extends keyof InstanceShape["operations"]> = NonNullable<
  TypedKind<InstanceShape, Name>["settle"]
>;

/** What an end is decided from. */
export interface Ending {
  readonly data: InstanceData;
  readonly brief: IntentBrief;
  /** What is open beside it. */
  readonly queue: readonly QueuedOperation[];
  readonly holds: Holds;
  readonly at: number;
}

export function endingOf(
  resource: InstanceResource,
  operation: TypedOpenOperation<InstanceShape>,
  outcome: TypedOutcome<unknown>,
): Ending {
  // An exclusive operation that was at work was so alone, a shared one beside shared ones: what else is open has not begun, although it may be
  // its turn now.
  const isDeadline = outcome.kind === "failed" && outcome.error.class === "deadline";
  const at = resource.last?.endedAt ?? operation.acceptedAt;
  // What has waited for the broker in vain has kept nobody else from it.
  const waitedInVain = outcome.kind === "failed" && detailsOf(outcome).class === "deadline";
  const wasInTurn = outcome.kind !== "cancelled" && !isDeadline;
  const queue = queueOf(resource, !wasInTurn ? "any" : operation.mode === "exclusive" ? "none" : "shared");
  return {
    data: waitedInVain ? resource.data : waitingSince(resource.data, at),
    brief: operation.brief,
    queue,
    holds: holdsOf(resource.data, queue),
    at,
  };
}

/** A member that is added behind a spread costs as much as ten that are copied: one that is new comes first. */
function waitingSince(data: InstanceData, at: number): InstanceData {
  return data.waitsSince === undefined ? { waitsSince: at, ...data } : { ...data, waitsSince: at };
}

/** The commit of an end: the instance as it is now, its phase, what is held and what goes on. The mark of the last call goes. */
export function settled(
  { queue, at, brief }: Ending,
  operation: OpenOperation,
  { data, holds, summary }: { readonly data: InstanceData; readonly holds: Holds; readonly summary: string },
  change: Omit<InstanceChange, "data" | "hold" | "release"> = {},
): InstanceChange {
  const attempt = data.attempt?.operation === operation.id ? null : data.attempt;
  const { revision, changes } = nextRevision(data, at, brief.by, summary);
  const phase = phaseOf(data, [...queue, ...expectedOf(change)], holds);
  const { parts, ...others } = change;
  return {
    data: { ...data, attempt, held: holds, revision, changes, phase },
    parts: { ...parts, [`call/${operation.id}`]: null },
    ...others,
    ...holdChange(queue, holds),
  };
}

/**
 * Nothing but that it is over: the commit that cancelled it says what that means for the queue, or the instance is gone. It may be in the middle
 * of that commit, so that what is held and what has reasons to be need not agree yet: neither is touched.
 */
export function endedQuietly(
  { data }: InstanceResource,
  operation: OpenOperation,
  also: { readonly data?: Partial<InstanceData>; readonly parts?: InstanceChange["parts"] } = {},
): InstanceChange {
  const { [operation.id]: _, ...held } = data.held;
  const attempt = data.attempt?.operation === operation.id ? null : data.attempt;
  return { data: { ...data, ...also.data, attempt, held }, parts: { ...also.parts, [`call/${operation.id}`]: null } };
}

/** There is nothing left that an end could change. */
export function isOver({ phase }: InstanceData): boolean {
  return phase === "gone" || phase === "abandoned";
}

/** What named an operation that failed waits for someone, and so does what depends on that. */
export function holdingNamed({ queue, holds }: Ending, operation: string, message: string): Holds {
  const movable = queue.filter(({ started, cancelled }) => !started && !cancelled);
  const named = dependents({ operation, paths: [] }, movable).map(({ id }) => id);
  return withHold(holds, named, { kind: "failure", operation, message });
}

/** So many failures are kept; the oldest go first. */
const keptFailures = 50;

export function withFailure(data: InstanceData, failure: FailedIntent): readonly FailedIntent[] {
  return [...data.failures, failure].slice(-keptFailures);
}

export function failureOf(
  operation: OpenOperation,
  { brief, at }: Ending,
  outcome: Extract<TypedOutcome<unknown>, { kind: "failed" }>,
): FailedIntent {
  const details = detailsOf(outcome);
  return {
    operation: operation.id,
    op: brief.op,
    paths: brief.paths,
    class: details.class ?? outcome.error.class,
    message: shortened(outcome.error.message, 1_000),
    at,
    repeatable: details.repeatable ?? true,
  };
}

/** Nobody knows what it has done; or the broker did it, and it could not be kept. */
export function isUncertain(outcome: Extract<TypedOutcome<unknown>, { kind: "failed" }>): boolean {
  return detailsOf(outcome).uncertain === true || outcome.error.class === "unkeepable";
}

/** What the broker's answer said beyond words. What failed otherwise, as by its deadline, has no details. */
export function detailsOf({ error }: Extract<TypedOutcome<unknown>, { kind: "failed" }>): Partial<CallFailure> {
  const { details } = error;
  return typeof details === "object" && details !== null && !Array.isArray(details)
    ? (details as Partial<CallFailure>)
    : {};
}

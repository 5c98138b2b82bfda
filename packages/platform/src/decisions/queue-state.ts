import type { ListedOperation, TypedChange, TypedResource } from "@osbert/journal";
import type {
  CallMark,
  HoldReason,
  InstanceData,
  InstanceShape,
  IntentBrief,
  Phase,
} from "../records/instance-record.js";
import { shortened } from "./revision.js";

export type InstanceResource = TypedResource<InstanceShape>;
export type InstanceChange = TypedChange<InstanceShape>;

/** An open operation as decisions about the queue see it. */
export interface QueuedOperation {
  readonly id: string;
  readonly kind: string;
  readonly part: string | null;
  readonly acceptedAt: number;
  readonly brief: IntentBrief;
  readonly held: boolean;
  /** Someone may be at it, or was, or its first call was written ahead: it keeps its place, and cannot be held any more. */
  readonly started: boolean;
  /** The journal itself keeps its place. A killed process leaves calls that were written ahead, of which only their marks tell. */
  readonly isFixed: boolean;
  /** The broker may have done something for it. Decided from what was written ahead, never from whether someone is at it. */
  readonly sent: boolean;
  readonly cancelled: boolean;
}

/**
 * `beside`: which operations may have run beside one that has just ended. Whoever decides what becomes of calls has read their marks with the
 * resource: without them only the journal's word counts.
 */
export function queueOf(
  { open, running, parts }: InstanceResource,
  beside: "any" | "shared" | "none" = "any",
): readonly QueuedOperation[] {
  const candidates = beside === "shared" ? open.filter(({ mode }) => mode === "shared") : open;
  const turn = running && beside !== "none" ? inTurn(candidates) : new Set<string>();
  return open.map((operation) => {
    const mark = parts.get(`call/${operation.id}`);
    const isFixed = operation.attempts > 0 || operation.steps.length > 0 || turn.has(operation.id);
    return {
      id: operation.id,
      kind: operation.kind,
      part: operation.part,
      acceptedAt: operation.acceptedAt,
      brief: operation.brief,
      held: operation.held,
      started: isFixed || mark !== undefined,
      isFixed,
      sent: mark !== undefined && isSent(mark, operation),
      cancelled: operation.cancel !== null,
    };
  });
}

/**
 * The mark of a call is written before the call: without one nothing was sent. Nor was anything done if the look that it was written for ended with
 * another wait, because the broker was busy or could not be reached, and none was ever lost.
 */
function isSent(mark: CallMark, { polls, steps, state }: ListedOperation): boolean {
  const waits = polls?.some(([name, , looks]) => name === mark.call && looks > mark.look) ?? false;
  // A recorded step may be an answer: from then on it is under way at the broker.
  return steps.length > 0 || mark.lost > 0 || !waits || state === "running";
}

/**
 * What was sent by a process that is no more: it keeps its place, although the journal would let what comes to the front go before it. Whoever puts
 * something there names these before it in the new order.
 */
export function overtakable(queue: readonly QueuedOperation[]): readonly QueuedOperation[] {
  return queue.filter(({ started, isFixed, held, cancelled }) => started && !isFixed && !held && !cancelled);
}

/** Which operations an engine may be at: as the journal sees it. */
function inTurn(open: readonly ListedOperation[]): ReadonlySet<string> {
  const turn = new Set<string>();
  for (const { id, held, mode } of open) {
    if (held) continue;
    if (mode === "exclusive") return turn.size === 0 ? new Set([id]) : turn;
    turn.add(id);
  }
  return turn;
}

export type Holds = InstanceData["held"];

/** The reasons of all that is held now; what was held when it was accepted brought its reason along. */
export function holdsOf(data: InstanceData, queue: readonly QueuedOperation[]): Holds {
  const known = queue.filter(({ held }) => held).map(({ id, brief }) => [id, data.held[id] ?? initial(brief)] as const);
  return Object.fromEntries(known);
}

/** As many as failures are kept: of an older one nobody could say any more that it was corrected. */
const keptReasons = 50;

export function withHold(holds: Holds, operations: readonly string[], reason: HoldReason): Holds {
  // Each of many operations has each of many reasons: what a broker said at length is in the journal.
  const brief = "message" in reason ? { ...reason, message: shortened(reason.message, 200) } : reason;
  const more = operations.map((id) => [id, [...(holds[id] ?? []), brief].slice(-keptReasons)] as const);
  return { ...holds, ...Object.fromEntries(more) };
}

export function withoutHold(holds: Holds, isOver: (reason: HoldReason, operation: string) => boolean): Holds {
  const left = Object.entries(holds).map(
    ([id, reasons]) => [id, reasons.filter((reason) => !isOver(reason, id))] as const,
  );
  return Object.fromEntries(left.filter(([, reasons]) => reasons.length > 0));
}

const nothingMoves: Pick<InstanceChange, "hold" | "release"> = {};

/** What the reasons ask of the journal: an operation is held as long as it has one. */
export function holdChange(queue: readonly QueuedOperation[], holds: Holds): Pick<InstanceChange, "hold" | "release"> {
  if (queue.length === 0) return nothingMoves;
  const movable = queue.filter(({ cancelled }) => !cancelled);
  const hold = movable.filter(({ id, held, started }) => !held && !started && holds[id] !== undefined);
  const release = movable.filter(({ id, held }) => held && holds[id] === undefined);
  return {
    ...(hold.length > 0 && { hold: hold.map(({ id }) => id) }),
    ...(release.length > 0 && { release: release.map(({ id }) => id) }),
  };
}

/** What an instance is at the moment, from what is kept of it and what is open. */
export function phaseOf(data: InstanceData, queue: readonly QueuedOperation[], holds: Holds): Phase {
  if (data.phase === "gone" || data.phase === "abandoned" || data.phase === "unmanaged") return data.phase;
  const open = queue.filter(({ id, cancelled }) => !cancelled && holds[id] === undefined);
  if (open.some(({ kind }) => kind === "delete")) return "deleting";
  if (data.applied === null) {
    const create = open.find(({ kind }) => kind === "create" || kind === "adopt");
    // Its id is written with the mark of its first call.
    if (create !== undefined) return create.started || data.osbId !== null ? "creating" : "pending";
    if (data.lastDelete?.how === "failed") return "delete-rejected";
    if (data.failures.some(({ op }) => op === "create" || op === "adopt")) return "failed";
    // The create was stopped for a delete that left something which cannot be used.
    return data.lastDelete === null ? "pending" : "delete-rejected";
  }
  if (!data.usable) return "halted";
  if (Object.values(holds).some((reasons) => reasons.some(({ kind }) => kind === "failure"))) return "halted";
  if (data.lastDelete?.how === "failed") return "delete-rejected";
  return open.some(({ kind }) => kind === "update") ? "updating" : "ready";
}

function initial({ heldFor }: IntentBrief): readonly HoldReason[] {
  return [heldFor ?? { kind: "lock", message: "it was locked" }];
}

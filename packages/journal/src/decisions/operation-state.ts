import type { ListedOperation, OpenOperation, OperationState } from "../operation.js";
import { inTurn } from "./schedule.js";

/** What the state of a resource's open operations depends on besides the record. */
export interface Moment {
  /** An engine runs the resource: it may be in the middle of an operation that is in turn. */
  readonly leased: boolean;
  readonly now: number;
  /** Whether nothing begins in a lane. */
  readonly isPaused: (lane: string) => boolean;
}

/** The open operations of a record with their states, in their order. The one place that says which state an operation is in. */
export function withStates(open: readonly OpenOperation[], moment: Moment): readonly ListedOperation[] {
  const turn = new Set(moment.leased ? inTurn(open).map(({ id }) => id) : []);
  // The new member first: one that is added behind a spread costs as much as ten that are copied.
  return open.map((operation) => ({ state: stateOf(operation, turn.has(operation.id), moment), ...operation }));
}

/** One that waits in a part, behind those in the record: it is nobody's turn there. */
export function withStateInQueue(operation: OpenOperation, moment: Moment): ListedOperation {
  return { state: stateOf(operation, false, moment), ...operation };
}

function stateOf(operation: OpenOperation, runs: boolean, { now, isPaused }: Moment): OperationState {
  if (operation.cancel !== null) return "cancelling";
  if (operation.held) return "held";
  if (operation.readyAt > now) return "waiting";
  if (runs) return "running";
  return isPaused(operation.lane) ? "paused" : "queued";
}

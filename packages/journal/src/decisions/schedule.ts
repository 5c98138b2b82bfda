import type { OpenOperation } from "../operation.js";
import type { ResourceState } from "../state.js";
import type { Label } from "../store.js";

/**
 * J7: the operations that may run now as far as order goes: the first one alone if it is exclusive, else the shared ones before the
 * first exclusive one. Held ones stand aside. One that waits for its time keeps its place: those behind it wait too.
 */
export function inTurn(open: readonly OpenOperation[]): readonly OpenOperation[] {
  const turn: OpenOperation[] = [];
  for (const operation of open) {
    if (operation.held) continue;
    if (operation.mode === "exclusive") return turn.length === 0 ? [operation] : turn;
    turn.push(operation);
  }
  return turn;
}

export function runnable(state: ResourceState, now: number): readonly OpenOperation[] {
  return inTurn(state.open).filter((operation) => operation.readyAt <= now && operation.cancel === null);
}

/** Operations that must be ended without running: their time is up, or they were cancelled. */
export function overdue(state: ResourceState, now: number): readonly OpenOperation[] {
  return state.open.filter((operation) => isOverdue(operation, now));
}

export function hasOverdue(state: ResourceState, now: number): boolean {
  return state.open.some((operation) => isOverdue(operation, now));
}

function isOverdue({ cancel, deadlineAt }: OpenOperation, now: number): boolean {
  return cancel !== null || isPast(deadlineAt, now);
}

const never = Number.POSITIVE_INFINITY;

/** When an engine must next look at a resource that nobody runs; 0: at once. */
export function nextLook(state: ResourceState): number | null {
  let next = Math.min(state.pruneAt ?? never, state.queuedDeadlineAt ?? never);
  for (const operation of inTurn(state.open)) next = Math.min(next, operation.readyAt);
  for (const operation of state.open) {
    if (operation.cancel !== null) return 0;
    next = Math.min(next, operation.deadlineAt ?? next);
  }
  return Number.isFinite(next) ? next : null;
}

/** When its runner must next look at a resource of which these operations run. */
export function nextLookBeside(
  state: ResourceState,
  running: ReadonlySet<string> | ReadonlyMap<string, unknown>,
  now: number,
): number | null {
  let next = state.queuedDeadlineAt ?? never;
  // What is ready waits for a place: that comes without a clock.
  for (const { id, readyAt } of inTurn(state.open))
    if (readyAt > now && !running.has(id)) next = Math.min(next, readyAt);
  for (const { id, deadlineAt } of state.open) if (!running.has(id)) next = Math.min(next, deadlineAt ?? never);
  return Number.isFinite(next) ? next : null;
}

/** The class of work that is due first: what is claimed for it can then be run. */
export function laneOf(state: ResourceState): string {
  // What is to end needs no room: an engine whose lane is full or paused must come by all the same.
  if (state.dropping !== undefined) return "";
  let next: OpenOperation | undefined;
  for (const operation of inTurn(state.open)) {
    if (next === undefined || operation.readyAt < next.readyAt) next = operation;
  }
  return next?.lane ?? state.open[0]?.lane ?? "";
}

/**
 * Of resources at which an engine may have to look although the lane in which they are found has no room: operations of several lanes are in turn, or
 * one was told to stop. See engine/passed-over.ts.
 */
export const passedOverLabel: Label = { name: "osbert.passed-over", value: "maybe" };

export function mayBePassedOver({ open }: ResourceState): boolean {
  if (open.some(({ cancel }) => cancel !== null)) return true;
  if (open.length < 2) return false;
  const turn = inTurn(open);
  return turn.some(({ lane }) => lane !== turn[0]?.lane);
}

export function isPast(time: number | null, now: number): boolean {
  return time !== null && time <= now;
}

/** The earlier of two times; `null` is never. */
export function earlier(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.min(a, b);
}

import { JournalError } from "../errors.js";
import { limits } from "../limits.js";
import type { OpenOperation, Wait } from "../operation.js";

/** What the attempt has seen may be older than what it was told to hurry for: then the next one comes at once. */
export function nextAttemptAt({ hurried }: OpenOperation, until: number, now: number): number {
  return hurried === true ? Math.min(until, now) : until;
}

/** When a wait is over. A poll that was told to hurry while it looked looks once more. */
export function untilOf({ hurried }: OpenOperation, { kind, until }: Wait, now: number): number {
  return hurried === true && kind === "poll" ? Math.min(until, now) : until;
}

/** An operation with the times for which it waits, and those of which nothing tells yet that they have begun. */
export interface Waiting {
  readonly operation: OpenOperation;
  readonly began: readonly Wait[];
}

export function withWaits(operation: OpenOperation, waits: readonly Wait[], now: number): Waiting {
  if (waits.length === 0) return { operation, began: [] };
  let { waits: begun, polls = [] } = operation;
  const began: Wait[] = [];
  for (const wait of waits) {
    const { name } = wait;
    if (wait.kind === "poll") {
      const until = untilOf(operation, wait, now);
      polls = [...polls.filter(([other]) => other !== name), [name, until, wait.looks, wait.since]];
    } else if (!begun.some(([other]) => other === name)) {
      begun = [...begun, [name, wait.until]];
      began.push(wait);
    }
  }
  const most = limits.stepsOfAnOperation;
  if (begun.length > most) throw new JournalError("too-large", `an operation has at most ${most} waits`);
  if (polls.length > most) throw new JournalError("too-large", `an operation has at most ${most} polls at a time`);
  return { operation: { ...operation, waits: begun, ...(polls.length > 0 && { polls }) }, began };
}

/** What was told to hurry has been heard. */
export function withoutHurry({ hurried: _, ...operation }: OpenOperation): OpenOperation {
  return operation;
}

/** A poll that has seen something goes on no longer. */
export function withoutPoll({ polls = [], ...operation }: OpenOperation, name: string): OpenOperation {
  const others = polls.filter(([other]) => other !== name);
  return others.length === 0 ? operation : { ...operation, polls: others };
}

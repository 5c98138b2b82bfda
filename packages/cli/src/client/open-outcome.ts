import { BrokerAnswerError, OperationFailedError } from "@osbert/protocol/client";
import { CommandError, exitStatuses } from "./exit-status.js";

/** What may be there although a command failed, and the command line that removes it. */
export interface Leftover {
  /** "my-db may exist at the broker" */
  readonly sentence: string;
  readonly remove: string;
}

/** A change failed in a way that does not tell what the broker has done. */
export class OpenOutcomeError extends Error {
  override readonly name = "OpenOutcomeError";
  override readonly cause: unknown;
  readonly leftover: Leftover;

  constructor(cause: unknown, leftover: Leftover) {
    super("the outcome is open", { cause });
    this.cause = cause;
    this.leftover = leftover;
  }
}

/** Does a part of a change; a failure that leaves its outcome open is told with what may be left. */
export async function mayLeave<T>(leftover: Leftover, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw leavesOpen(error) ? new OpenOutcomeError(error, leftover) : error;
  }
}

/**
 * Whether the broker may have done what it was asked for, or a part of it. A 4xx says that it has not; an operation that failed may have left
 * what it made so far.
 */
export function leavesOpen(error: unknown): boolean {
  // What the broker answered to a change that it has done cannot be read.
  if (error instanceof CommandError) return error.status === exitStatuses.unreachable.status;
  if (!(error instanceof BrokerAnswerError)) return false;
  if (error instanceof OperationFailedError) return true;
  const { status, sent } = error;
  return status === null ? sent : status < 300 || status === 408 || status >= 500;
}

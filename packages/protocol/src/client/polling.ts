import type { LastOperationResponse } from "../messages.js";
import { type BrokerAnswer, BrokerAnswerError } from "./broker-answer.js";
import { longestRetryAfterMs } from "./retry-after.js";

export interface PollingPace {
  /** The first pause when the broker gives no advice; it grows from poll to poll. */
  readonly firstMs: number;
  readonly factor: number;
  readonly longestMs: number;
}

export const defaultPace: PollingPace = { firstMs: 1_000, factor: 1.7, longestMs: 60_000 };

/** Shorter advice is brought back to this: a broker cannot make a platform spin. */
const shortestAdviceMs = 1_000;

/** How long to wait before the next poll: as the broker says, else longer each time. */
export function nextPauseMs(polls: number, advisedMs: number | undefined, pace: PollingPace = defaultPace): number {
  if (advisedMs !== undefined) return Math.min(longestRetryAfterMs, Math.max(shortestAdviceMs, advisedMs));
  return Math.min(pace.longestMs, pace.firstMs * pace.factor ** polls);
}

export type PollResult =
  | { readonly kind: "ended"; readonly last: LastOperationResponse }
  | { readonly kind: "gone" }
  | { readonly kind: "again"; readonly last: LastOperationResponse | undefined };

/**
 * What one poll's answer means. Only a valid final state ends polling, and 410 while deleting; anything else, an error included, is
 * asked again (P-POLL-05 to P-POLL-07).
 */
export function readPoll(answer: BrokerAnswer | undefined, deleting: boolean): PollResult {
  if (answer?.status === 410 && deleting) return { kind: "gone" };
  const last = answer?.status === 200 ? asLastOperation(answer) : undefined;
  if (last !== undefined && last.state !== "in progress") return { kind: "ended", last };
  return { kind: "again", last };
}

function asLastOperation({ body }: BrokerAnswer): LastOperationResponse | undefined {
  const state = body?.state;
  if (state !== "in progress" && state !== "succeeded" && state !== "failed") return undefined;
  return body as unknown as LastOperationResponse;
}

/** The operation was accepted and has failed, or its time is up. */
export class OperationFailedError extends BrokerAnswerError {
  override readonly name = "OperationFailedError";
  readonly last: LastOperationResponse | undefined;

  constructor(
    message: string,
    options: {
      readonly kind: "operation failed" | "operation timed out";
      readonly last: LastOperationResponse | undefined;
    },
  ) {
    super(message, { kind: options.kind });
    this.last = options.last;
  }
}

import type { LastOperationResponse } from "../messages.js";
import { type BrokerAnswer, BrokerAnswerError } from "./broker-answer.js";
import { longestRetryAfterMs } from "./retry-after.js";

export interface PollingPace {
  /** The first pause when the broker gives no advice; it grows from poll to poll. */
  readonly firstMs: number;
  readonly factor: number;
  readonly longestMs: number;
  /** The longest pause once it has taken an hour. Default: as before. */
  readonly longestAfterAnHourMs?: number;
}

export const defaultPace: PollingPace = {
  firstMs: 1_000,
  factor: 1.7,
  longestMs: 60_000,
  longestAfterAnHourMs: 300_000,
};

/** Shorter advice is brought back to this: a broker cannot make a platform spin. */
const shortestAdviceMs = 1_000;
/** By which part a pause is shortened or lengthened: what began together must not ask together. */
const jitter = 0.2;
const anHourMs = 3_600_000;

/** How long to wait before the next poll: as the broker says, else longer each time. `tookMs`: since the first of them was due. */
export function nextPauseMs(
  polls: number,
  advisedMs: number | undefined,
  { pace = defaultPace, tookMs = 0, random = Math.random }: PauseFacts = {},
): number {
  if (advisedMs !== undefined) return Math.min(longestRetryAfterMs, Math.max(shortestAdviceMs, advisedMs));
  const longestMs = (tookMs >= anHourMs ? pace.longestAfterAnHourMs : undefined) ?? pace.longestMs;
  return Math.min(longestMs, pace.firstMs * pace.factor ** polls) * (1 - jitter + 2 * jitter * random());
}

export interface PauseFacts {
  readonly pace?: PollingPace;
  readonly tookMs?: number;
  readonly random?: () => number;
}

/** What the operation does that is polled. `unknown`: it may be a delete. */
export type PolledChange = "create" | "update" | "delete" | "unknown";

/** What counts of an answer to a poll. */
export type PolledAnswer = Pick<BrokerAnswer, "status" | "body">;

/** The same answer again and again: which, how often, and since when. */
export interface RepeatedAnswer {
  readonly status: number;
  readonly error: string | undefined;
  readonly times: number;
  readonly since: number;
}

/** Answers are the same if status and `error` are. A poll without an answer neither counts nor ends the row. */
export function repeatedAnswer(
  before: RepeatedAnswer | undefined,
  answer: PolledAnswer | undefined,
  now: number,
): RepeatedAnswer | undefined {
  if (answer === undefined) return before;
  const { status, body } = answer;
  const error = typeof body?.error === "string" ? body.error : undefined;
  if (before?.status === status && before.error === error) return { ...before, times: before.times + 1 };
  return { status, error, times: 1, since: now };
}

export type PollResult =
  | { readonly kind: "ended"; readonly last: LastOperationResponse }
  | { readonly kind: "gone" }
  /** The broker does not understand the question, and would not the next time. */
  | { readonly kind: "refused" }
  /** For so long has the broker known nothing of a create that nobody can tell what became of it. */
  | { readonly kind: "lost" }
  /** 404 to the poll of a delete, where 410 is specified: one more DELETE tells which it is. */
  | { readonly kind: "not found" }
  | { readonly kind: "again"; readonly last: LastOperationResponse | undefined };

const mostBadRequests = 3;
const longestNotFoundMs = 600_000;

/**
 * What one poll's answer means, which is the last of a row of the same. A valid final state ends the polling, and 410 while deleting; the third
 * equal 400 and ten minutes of 404 to a create do, too. Anything else, an error included, is asked again (P-POLL-05 to P-POLL-07).
 */
export function readPoll(
  answer: PolledAnswer | undefined,
  repeated: RepeatedAnswer | undefined,
  change: PolledChange,
  now: number,
): PollResult {
  if (answer === undefined || repeated === undefined) return { kind: "again", last: undefined };
  switch (answer.status) {
    case 200: {
      const last = asLastOperation(answer);
      return last === undefined || last.state === "in progress" ? { kind: "again", last } : { kind: "ended", last };
    }
    case 400:
      if (repeated.times >= mostBadRequests) return { kind: "refused" };
      break;
    case 404:
      if (change === "delete") return { kind: "not found" };
      if (change === "create" && now - repeated.since > longestNotFoundMs) return { kind: "lost" };
      break;
    case 410:
      if (change === "delete" || change === "unknown") return { kind: "gone" };
      break;
  }
  return { kind: "again", last: undefined };
}

function asLastOperation({ body }: PolledAnswer): LastOperationResponse | undefined {
  const state = body?.state;
  if (state !== "in progress" && state !== "succeeded" && state !== "failed") return undefined;
  return body as unknown as LastOperationResponse;
}

/** The operation was accepted and has failed, its time is up, or the broker knows nothing of it any more. */
export class OperationFailedError extends BrokerAnswerError {
  override readonly name = "OperationFailedError";
  readonly last: LastOperationResponse | undefined;

  constructor(
    message: string,
    options: ErrorOptions & {
      readonly kind: "operation failed" | "operation timed out" | "operation lost";
      readonly last: LastOperationResponse | undefined;
    },
  ) {
    super(message, options);
    this.last = options.last;
  }
}

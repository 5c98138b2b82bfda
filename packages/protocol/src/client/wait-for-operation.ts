import { classify } from "../answer-classes.js";
import type { DeleteResponse, LastOperationResponse } from "../messages.js";
import { type BrokerAnswer, BrokerAnswerError, type Changed, reasonOf } from "./broker-answer.js";
import type { WaitOptions } from "./call-options.js";
import {
  nextPauseMs,
  OperationFailedError,
  type PollingPace,
  type RepeatedAnswer,
  readPoll,
  repeatedAnswer,
} from "./polling.js";
import { receivedOf } from "./received.js";

const longestPollingSeconds = 7 * 24 * 60 * 60;
const gone: LastOperationResponse = { state: "succeeded", description: "the resource is gone" };

export interface WaitPorts {
  readonly pace: PollingPace;
  readonly now: () => number;
  readonly random: () => number;
  readonly poll: (operation: string | undefined) => Promise<BrokerAnswer>;
  /** Sends the DELETE once more. */
  readonly deleteAgain: () => Promise<Changed<DeleteResponse>>;
}

/** Polls until the operation has ended; what an answer means says `readPoll`. */
export async function waitForOperation(options: WaitOptions, ports: WaitPorts): Promise<LastOperationResponse> {
  const { pace, now, random } = ports;
  const { change = "update", signal } = options;
  const seconds = Math.min(options.maximumPollingDuration ?? longestPollingSeconds, longestPollingSeconds);
  const beganAt = now();
  const giveUpAt = beganAt + seconds * 1_000;
  let { operation, retryAfterMs: advisedMs } = options;
  let repeated: RepeatedAnswer | undefined;
  let mayDeleteAgain = Boolean(options.serviceId && options.planId);
  for (let polls = 0; ; polls++) {
    const pauseMs = nextPauseMs(polls, advisedMs, { pace, random, tookMs: now() - beganAt });
    // However long the pause should be: there is a last look when the time is up.
    await pause(Math.min(pauseMs, Math.max(0, giveUpAt - now())), signal);
    // No answer is no reason to stop asking; being called off is.
    const answer = await ports.poll(operation).catch((error: unknown) => {
      if (signal?.aborted) throw error;
      return undefined;
    });
    advisedMs = answer?.retryAfterMs;
    repeated = repeatedAnswer(repeated, answer, now());
    const poll = readPoll(answer, repeated, change, now());
    if (poll.kind === "gone") return gone;
    const last = "last" in poll ? poll.last : undefined;
    options.onPoll?.(last);
    switch (poll.kind) {
      case "ended":
        if (poll.last.state === "succeeded") return poll.last;
        throw failed(poll.last.description ?? "the operation has failed; the broker does not say why", { last });
      case "refused":
        throw failed(`the broker answers every poll with 400: ${reasonOf(answer)}`);
      case "lost":
        throw failed("the broker has known nothing of the operation for more than ten minutes", {
          kind: "operation lost",
        });
      case "not found": {
        if (!mayDeleteAgain) break;
        const again = await deleteAgain(ports, signal);
        if (again.kind === "done") return gone;
        advisedMs = again.retryAfterMs;
        if (again.kind === "accepted") {
          // There is one more operation now, and no reason for a third.
          operation = again.operation;
          mayDeleteAgain = false;
        }
        break;
      }
      case "again":
    }
    if (giveUpAt - now() <= 0)
      throw failed(`the operation has not ended within ${seconds} seconds`, { kind: "operation timed out", last });
  }
}

type DeletedAgain = Changed<DeleteResponse> | { readonly kind: "open"; readonly retryAfterMs: number | undefined };

/** A second DELETE harms nobody, and its answer tells more than 404. `open`: there was none that counts, so that it may be sent again. */
async function deleteAgain(ports: WaitPorts, signal: AbortSignal | undefined): Promise<DeletedAgain> {
  const came = await ports.deleteAgain().catch((error: unknown) => {
    if (error instanceof BrokerAnswerError && !signal?.aborted) return error;
    throw error;
  });
  if (!(came instanceof Error)) return came;
  // What the classes say of a deprovision they say of an unbind, too.
  const { class: found, next } = classify("deprovision", receivedOf(came));
  if (next === "keep" || found === "not found")
    throw failed(`the broker knows no such operation, and one more delete failed: ${came.message}`, { cause: came });
  return { kind: "open", retryAfterMs: came.retryAfterMs };
}

function failed(
  message: string,
  facts: Partial<ConstructorParameters<typeof OperationFailedError>[1]> = {},
): OperationFailedError {
  return new OperationFailedError(message, { kind: "operation failed", last: undefined, ...facts });
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      signal?.removeEventListener("abort", called);
      resolve();
    }
    function called(): void {
      clearTimeout(timer);
      reject(new BrokerAnswerError("waiting was called off", { kind: "called off", cause: signal?.reason }));
    }
    if (signal?.aborted) called();
    else signal?.addEventListener("abort", called, { once: true });
  });
}

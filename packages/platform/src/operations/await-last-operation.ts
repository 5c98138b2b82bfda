import { type Operation, RetryLater } from "@osbert/journal";
import { classify, type LastOperationResponse, type OriginatingIdentity } from "@osbert/protocol";
import {
  type Answered,
  BrokerAnswerError,
  nextPauseMs,
  type PolledAnswer,
  type PolledChange,
  type RepeatedAnswer,
  readPoll,
  receivedOf,
  repeatedAnswer,
} from "@osbert/protocol/client";
import type { CallMark } from "../records/instance-record.js";
import { clipped } from "./call-broker.js";
import type { RunPorts } from "./run-ports.js";
import { pausesAreThrown } from "./send-call.js";

/** An operation that goes on at a broker. */
export interface BrokerOperation {
  /** Of the step that records its end. */
  readonly name: string;
  readonly broker: string;
  readonly instance: string;
  readonly binding?: string;
  readonly change: PolledChange;
  readonly serviceId: string;
  /** The plan of before it (P-POLL-04). */
  readonly planId: string;
  /** The broker's name for it, when it accepted it, and when it wants to be asked first. */
  readonly operation: string | null;
  readonly at: number;
  readonly retryAfterMs: number | null;
  readonly identity?: OriginatingIdentity;
  /** Keeps that the broker has forgotten it, before that is recorded as its end: whoever stops what asks after that knows (E8). */
  readonly whenForgotten?: () => Promise<void>;
}

/** How it ended. */
export type BrokerOperationEnd =
  | { readonly kind: "succeeded" }
  /** 410 while it is being deleted. */
  | { readonly kind: "gone" }
  /** 404 while it is being deleted: one more DELETE tells. */
  | { readonly kind: "not found" }
  /** The broker knows nothing of a create any more. */
  | { readonly kind: "lost"; readonly message: string }
  | {
      readonly kind: "failed";
      readonly class: "operation failed" | "operation timed out";
      readonly message: string;
      readonly usable: boolean | null;
      readonly repeatable: boolean | null;
      /** The broker has not said so: it may still be at it. */
      readonly uncertain: boolean;
    };

/** Keeps the row of equal answers over restarts; nothing is written as long as the broker answers as it should. */
export interface PollMemory {
  load(): Promise<CallMark["repeated"] | undefined>;
  save(repeated: CallMark["repeated"] | undefined): Promise<void>;
}

/** OSB leaves the maximum to platforms where a plan says none. */
const longestPollingSeconds = 7 * 24 * 60 * 60;
const longestDescription = 1_000;

/** Polls until it has ended, at the pace that the broker advises, for as long as the plan says. What an answer means says `readPoll`. */
export async function awaitLastOperation(
  ports: RunPorts,
  { poll, describe }: Pick<Operation, "poll" | "describe">,
  asked: BrokerOperation,
  maximumPollingDuration: number | undefined,
  memory: PollMemory,
): Promise<BrokerOperationEnd> {
  const { random, pauses } = ports;
  const seconds = Math.min(maximumPollingDuration ?? longestPollingSeconds, longestPollingSeconds);
  const giveUpAt = asked.at + seconds * 1_000;
  const pause = (looks: number, now: number, advisedMs: number | undefined): RetryLater => {
    const pauseMs = nextPauseMs(looks, advisedMs, { pace: pauses.polling, random, tookMs: now - asked.at });
    // However long the pause should be: there is a last look when the time is up.
    return new RetryLater("the broker goes on", { afterMs: Math.min(pauseMs, Math.max(0, giveUpAt - now)) });
  };
  const look = async ({ looks, signal }: { readonly looks: number; readonly signal: AbortSignal }) => {
    if (looks === 0) throw pause(0, ports.journal().now(), asked.retryAfterMs ?? undefined);
    const came = await ask(ports, asked, signal);
    const now = ports.journal().now();
    const answer = came === undefined ? undefined : polledAnswer(came);
    const repeated = await remember(memory, answer, now);
    const seen = readPoll(answer, repeated, asked.change, now);
    switch (seen.kind) {
      case "ended":
        return endOf(seen.last);
      case "gone":
      case "not found":
        return { kind: seen.kind } as const;
      case "lost":
        await asked.whenForgotten?.();
        return { kind: "lost", message: "the broker has known nothing of the operation for ten minutes" } as const;
      case "refused":
        return failed("operation failed", `the broker answers every poll with 400: ${descriptionOf(answer)}`);
      case "again":
    }
    if (now >= giveUpAt)
      return failed("operation timed out", `the broker's operation has not ended within ${seconds} seconds`);
    if (typeof seen.last?.description === "string") describe(clipped(seen.last.description, longestDescription) ?? "");
    throw pause(looks, now, came?.retryAfterMs);
  };
  return poll(asked.name, look, { everyMs: pausesAreThrown });
}

/** `undefined`: no answer came, which is no reason to stop asking. */
async function ask(
  { brokers, newId }: RunPorts,
  { broker, instance, binding, serviceId, planId, operation, identity }: BrokerOperation,
  signal: AbortSignal,
): Promise<Answered<LastOperationResponse> | BrokerAnswerError | undefined> {
  const client = brokers.client(broker);
  if (client === undefined) return undefined;
  const options = {
    ...(operation !== null && { operation }),
    ...(identity !== undefined && { identity }),
    serviceId,
    planId,
    requestId: newId(),
    signal,
  };
  const asked =
    binding === undefined
      ? client.instanceLastOperation(instance, options)
      : client.bindingLastOperation(instance, binding, options);
  const came = await asked.catch((error: unknown) => {
    if (error instanceof BrokerAnswerError && !signal.aborted) return error;
    throw error;
  });
  brokers.saw(broker, classify("fetch", receivedOf(came)).class, came instanceof Error ? came.message : null);
  return came;
}

function polledAnswer({ status, body }: Answered<unknown> | BrokerAnswerError): PolledAnswer | undefined {
  return status === null ? undefined : { status, body: body as PolledAnswer["body"] };
}

/** A broker that answers as it should has nothing kept: only then does a poll cost a commit of its own. */
async function remember(
  memory: PollMemory,
  answer: PolledAnswer | undefined,
  now: number,
): Promise<RepeatedAnswer | undefined> {
  const kept = await memory.load();
  const before = kept === undefined ? undefined : { ...kept, error: kept.error };
  const repeated = repeatedAnswer(before, answer, now);
  if (answer === undefined || repeated === undefined) return repeated;
  if (answer.status === 200) {
    if (kept !== undefined) await memory.save(undefined);
  } else {
    const { error, ...row } = repeated;
    await memory.save({ ...row, ...(error !== undefined && { error: error.slice(0, 100) }) });
  }
  return repeated;
}

function endOf(last: LastOperationResponse): BrokerOperationEnd {
  if (last.state === "succeeded") return { kind: "succeeded" };
  const message =
    typeof last.description === "string" && last.description !== ""
      ? last.description
      : "the operation has failed; the broker does not say why";
  return failed("operation failed", message, last);
}

/** `last`: what the broker said of it; missing: it did not. */
function failed(
  found: "operation failed" | "operation timed out",
  message: string,
  last?: LastOperationResponse,
): BrokerOperationEnd {
  return {
    kind: "failed",
    class: found,
    message: clipped(message, 2_000) ?? "",
    usable: typeof last?.instance_usable === "boolean" ? last.instance_usable : null,
    repeatable: typeof last?.update_repeatable === "boolean" ? last.update_repeatable : null,
    uncertain: last === undefined,
  };
}

function descriptionOf(answer: PolledAnswer | undefined): string {
  const said = answer?.body?.description;
  return typeof said === "string" && said !== "" ? said : "it does not say why";
}

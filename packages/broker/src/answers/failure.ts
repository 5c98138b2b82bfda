import { JournalError, type Outcome } from "@osbert/journal";
import { BrokerError, type BrokerErrorCode, brokerErrors } from "@osbert/protocol";
import type { Verb } from "../service/verb.js";

/** What a platform that waited is told of an operation that did not end well. */
export function failureOf(verb: Verb, outcome: Exclude<Outcome, { kind: "succeeded" }>): BrokerError {
  if (outcome.kind === "cancelled") return new BrokerError("concurrency", `${verb} was cancelled: ${outcome.reason}`);
  const details = (outcome.error.details ?? {}) as {
    code?: string;
    instanceUsable?: boolean;
    updateRepeatable?: boolean;
  };
  const code = isCode(details.code) ? details.code : "operation-failed";
  const description = outcome.error.message === "" ? `${verb} failed` : outcome.error.message;
  return new BrokerError(code, description, {
    ...((verb === "update" || verb === "deprovision") &&
      typeof details.instanceUsable === "boolean" && { instanceUsable: details.instanceUsable }),
    ...(verb === "update" &&
      typeof details.updateRepeatable === "boolean" && { updateRepeatable: details.updateRepeatable }),
  });
}

/** Whatever went wrong inside, as something that may be told outside. */
export function asBrokerError(error: unknown): BrokerError {
  if (error instanceof BrokerError) return error;
  if (error instanceof JournalError) {
    switch (error.code) {
      case "invalid-key":
      case "invalid-change":
        return new BrokerError("bad-request", `an id or a value in the request cannot be kept: ${error.message}`, {
          cause: error,
        });
      case "too-large":
      case "not-serialisable":
        return new BrokerError("too-large", error.message, { cause: error });
      case "queue-full":
      case "contention":
        return new BrokerError("concurrency", "the instance is busy; ask again later", {
          cause: error,
          retryAfterSeconds: 1,
        });
      case "store-unavailable":
      case "lease-lost":
      case "step-repeated":
      case "unreadable":
      case "owned-elsewhere":
      case "schema-newer":
      case "schema-missing":
      case "invalid-key-ring":
      case "key-missing":
      case "key-wrong":
      case "stopped":
        return new BrokerError("unavailable", "the broker cannot reach its store; ask again later", {
          cause: error,
          retryAfterSeconds: 5,
        });
    }
  }
  return new BrokerError("operation-failed", "the broker could not answer the request; its log says why", {
    cause: error,
  });
}

function isCode(code: string | undefined): code is BrokerErrorCode {
  return code !== undefined && Object.hasOwn(brokerErrors, code);
}

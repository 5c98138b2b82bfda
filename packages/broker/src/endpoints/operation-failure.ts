import type { Outcome } from "@osbert/journal";
import { BrokerError, type BrokerErrorCode, brokerErrors } from "@osbert/protocol";
import { concurrencyError } from "../decisions/concurrency.js";
import type { Verb } from "../service/verb.js";

/** What a platform that waited is told of an operation that did not end well. */
export function operationFailure(verb: Verb, outcome: Exclude<Outcome, { kind: "succeeded" }>): BrokerError {
  if (outcome.kind === "cancelled") return concurrencyError.cancelled(verb, outcome.reason);
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

function isCode(code: string | undefined): code is BrokerErrorCode {
  return code !== undefined && Object.hasOwn(brokerErrors, code);
}

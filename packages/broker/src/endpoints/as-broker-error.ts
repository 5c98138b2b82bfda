import { JournalError } from "@osbert/journal";
import { BrokerError } from "@osbert/protocol";
import { journalRefusals, journalRetryAfterSeconds } from "@osbert/server";
import { concurrencyError } from "../decisions/concurrency.js";

/** Whatever went wrong inside, as something that may be told outside. */
export function asBrokerError(error: unknown): BrokerError {
  if (error instanceof BrokerError) return error;
  if (error instanceof JournalError) return ofJournal(error);
  return new BrokerError("operation-failed", "the broker could not answer the request; its log says why", {
    cause: error,
  });
}

function ofJournal(error: JournalError): BrokerError {
  switch (journalRefusals[error.code]) {
    case "cannot be kept":
      return new BrokerError("bad-request", `an id or a value in the request cannot be kept: ${error.message}`, {
        cause: error,
      });
    case "too large":
      return new BrokerError("too-large", error.message, { cause: error });
    case "crowded":
      return concurrencyError.crowded(error);
    case "unavailable":
      return new BrokerError("unavailable", "the broker cannot reach its store; ask again later", {
        cause: error,
        retryAfterSeconds: journalRetryAfterSeconds.unavailable,
      });
  }
}

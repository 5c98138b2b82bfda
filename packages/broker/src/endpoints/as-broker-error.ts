import { JournalError } from "@osbert/journal";
import { BrokerError } from "@osbert/protocol";
import { concurrencyError } from "../decisions/concurrency.js";

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
        return concurrencyError.crowded(error);
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

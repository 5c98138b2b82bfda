import { BrokerError } from "@osbert/protocol";

/** A 405 with those methods that are possible at the path. */
export function methodNotAllowed(method: string, possible: readonly string[]): BrokerError {
  const allow = possible.join(", ");
  const description = `${method.slice(0, 40)} is not possible here; ${allow} ${possible.length === 1 ? "is" : "are"}`;
  return new BrokerError("method-not-allowed", description, { allow });
}

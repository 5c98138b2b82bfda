import { BrokerError, type BrokerErrorCode } from "@osbert/protocol";
import type { InstanceChange } from "../records/instance-resource.js";

/** What is decided about a request: a pure value, made from what is stored and what is asked. */
export type Decision =
  /** Nothing changes; the platform is told why. */
  | { readonly kind: "refused"; readonly error: BrokerError }
  /** The same was asked before and is under way. */
  | { readonly kind: "repeated"; readonly operation: string }
  /** The same was asked before and is done; or there is nothing to change. */
  | { readonly kind: "done already" }
  /** It is not there (any more). */
  | { readonly kind: "gone" }
  | { readonly kind: "accepted"; readonly change: InstanceChange };

export function refused(code: BrokerErrorCode, description: string): Decision {
  return { kind: "refused", error: new BrokerError(code, description) };
}

export function accepted(change: InstanceChange): Decision {
  return { kind: "accepted", change };
}

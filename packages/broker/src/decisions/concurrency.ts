import { BrokerError } from "@osbert/protocol";
import { cancelledText } from "../records/ended-operation.js";
import type { Verb } from "../service/verb.js";
import type { Decision } from "./decision.js";

/**
 * B3: why a request has to wait. Every sentence of 422 ConcurrencyError has its home here; decisions refuse with them (`mustWait`),
 * endpoints throw them.
 */
export const concurrencyError = {
  /** `kind`: of the operation that is in the way. Without one: it was told to stop, or is not in sight. */
  instanceBusy: (kind?: string) => busy(`the instance ${doing(kind)}; ask again when that is over`),
  /** Its end would be taken for that of a new attempt. */
  instanceStopping: () => busy("the instance is being changed; ask again soon"),
  instanceDeleting: () => busy("the instance is being deprovisioned; ask again when it is gone"),
  bindingBusy: (kind?: string) => busy(`the binding ${doing(kind)}; ask again when that is over`),
  bindingStopping: () => busy("the binding is being changed; ask again soon"),
  bindingDeleting: () => busy("the binding is being deleted; ask again when it is gone"),
  someBindingBusy: () => busy("a binding of the instance is being changed; ask again when that is over"),
  cancelled: (verb: Verb, reason: string) => busy(cancelledText(verb, reason)),
  /** `late`: how long was waited. An earlier request was promised that it goes on. */
  goesOn: (late: string) => busy(`${late} and goes on; ask with accepts_incomplete=true`),
  /** Nothing is decided: too many asked at once. */
  crowded: (cause: unknown) =>
    new BrokerError("concurrency", "the instance is busy; ask again later", { cause, retryAfterSeconds: 1 }),
} as const;

export function mustWait(error: BrokerError): Decision {
  return { kind: "refused", error };
}

/** "is being provisioned", for the sentence that says why something has to wait. */
export function doing(kind: string | undefined): string {
  return words[kind as Verb] ?? "is being changed";
}

const words: Readonly<Record<Verb, string>> = {
  provision: "is being provisioned",
  update: "is being updated",
  deprovision: "is being deprovisioned",
  bind: "is being bound",
  unbind: "is being unbound",
};

function busy(description: string): BrokerError {
  return new BrokerError("concurrency", description);
}

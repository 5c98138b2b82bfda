import { Permanent } from "@osbert/journal";
import type { CallFailure, FailureClass, Refusal } from "../records/call-outcome.js";

/** The operation has failed; decisions about the queue are made of its details. */
export function failure(
  message: string,
  facts: { readonly class: FailureClass } & Partial<Omit<CallFailure, "class">>,
): Permanent {
  const details: CallFailure = {
    status: null,
    error: null,
    usable: null,
    repeatable: null,
    uncertain: false,
    orphan: null,
    ...facts,
  };
  return new Permanent(message, { details });
}

/** As the broker said it. */
export function refusal(
  { message, class: found, status, error, usable, repeatable }: Refusal,
  more: Partial<CallFailure> = {},
): Permanent {
  return failure(message, { class: found, status, error, usable, repeatable, ...more });
}

import type { AnswerClass } from "@osbert/protocol";

/**
 * What came of a call that changes something at a broker. It is recorded as the result of the step `answer to …`, which is the journal's line
 * of the answer. Nothing of it is a secret: credentials are in the binding's part.
 */
export type CallOutcome =
  | { readonly kind: "done"; readonly status: number; readonly dashboardUrl: string | null }
  | {
      readonly kind: "running";
      /** The broker's name for it. `null`: it gave none, or works at an attempt whose answer was lost. */
      readonly operation: string | null;
      readonly retryAfterMs: number | null;
      readonly dashboardUrl: string | null;
      readonly at: number;
      /** It only said that it is busy, after an attempt was lost: what it works at may be something else, and so may the end that polls tell. */
      readonly isAssumed?: true;
    }
  /** The broker has done it, and what it answered cannot be used. */
  | { readonly kind: "unusable"; readonly status: number | null; readonly message: string }
  /** The broker said no, or nothing that can be used. */
  | ({
      readonly kind: "refused";
      /** An earlier attempt at the same call is lost: it may have done what this one was refused. */
      readonly afterLost: boolean;
    } & Refusal)
  /** Nobody knows what it did: no answer, a process that died before it came, or one that says nothing. */
  | ({ readonly kind: "lost" } & Refusal);

export interface Refusal {
  readonly class: AnswerClass;
  readonly status: number | null;
  /** The field of that name. */
  readonly error: string | null;
  readonly message: string;
  /** `instance_usable` and `update_repeatable`; `null`: the broker is silent about it. */
  readonly usable: boolean | null;
  readonly repeatable: boolean | null;
}

/** How an operation fails: the `details` of its failure. Decisions about the queue are made of these. */
export interface CallFailure {
  readonly class: FailureClass;
  readonly status: number | null;
  readonly error: string | null;
  readonly usable: boolean | null;
  readonly repeatable: boolean | null;
  /** Nobody knows whether the broker did it. */
  readonly uncertain: boolean;
  /** What may be left at the broker is in the ledger under this key. */
  readonly orphan: string | null;
}

/**
 * An answer's class, or:
 * - `operation failed`, `operation timed out`, `operation lost`: it was accepted, and last_operation told so
 * - `preflight-drift`: what was right when it was admitted is not any more
 * - `deadline`: it waited too long before anything was sent
 * - `unregistered`: the broker is not registered any more
 * - `unusable answer`: the broker has done it, and what it answered cannot be used
 */
export type FailureClass =
  | AnswerClass
  | "operation failed"
  | "operation timed out"
  | "operation lost"
  | "preflight-drift"
  | "deadline"
  | "unregistered"
  | "unusable answer";

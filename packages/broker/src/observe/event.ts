import type { JournalEvent, OperationFacts, StoreAnswered } from "@osbert/journal";
import type { BrokerErrorCode } from "@osbert/protocol";
import type { PassedOver } from "../records/forced-result.js";

/**
 * Everything about a broker that is worth telling, in one union: its requests, its operations, its store. Adapters turn it into logs,
 * metrics and traces. Nothing here carries parameters, credentials, state or results; an error carries what its author wrote into it.
 */
export type BrokerEvent =
  | RequestAnswered
  | CatalogWarning
  | PassedOverByForce
  | StoreAnswered
  | (OperationEvent & OperationPlace)
  | (ResourceEvent & InstancePlace)
  | Exclude<JournalEvent, OperationFacts | { readonly key: string }>;

/** Told of everything, at once. What it throws is swallowed. */
export interface Observer {
  (event: BrokerEvent): void;
  /** It tells a person of warnings and errors, as `logTo` does: then they need not be written to standard error as well. */
  readonly logs?: true;
}

export type OperationEvent = Extract<JournalEvent, OperationFacts>;
export type ResourceEvent = Extract<Exclude<JournalEvent, OperationFacts>, { readonly key: string }>;

export interface InstancePlace {
  readonly platform: string;
  readonly instance: string;
}

/** A forced deletion is about to end that did not wait for some of the author's functions to end well. */
export interface PassedOverByForce extends InstancePlace {
  readonly kind: "passed over";
  readonly operation: string;
  readonly calls: readonly PassedOver[];
}

/** Where an operation belongs, in names. */
export interface OperationPlace extends InstancePlace {
  readonly binding: string | null;
  /** The service's name; `null` if the catalog has it no more. */
  readonly service: string | null;
  readonly plan: string | null;
}

/** Of a catalog that is offered from now on: what is allowed, but advised against, or says less than the service's own schema. */
export interface CatalogWarning {
  readonly kind: "catalog warning";
  /** `services[0].plans[2].id`. */
  readonly path: string;
  readonly message: string;
}

export interface RequestAnswered {
  readonly kind: "request answered";
  readonly method: string;
  /** The endpoint's name: "provision", "catalog", "readyz"…; `null` if it is none. */
  readonly route: string | null;
  readonly platform: string | null;
  /** The name of the credential; `null` if there was no valid one. */
  readonly credential: string | null;
  readonly instance: string | null;
  readonly binding: string | null;
  readonly service: NamedInRequest;
  readonly plan: NamedInRequest;
  readonly status: number;
  readonly errorCode: BrokerErrorCode | null;
  /** What the platform was told of an error. */
  readonly description: string | null;
  /** What went wrong inside, where that was not the platform's doing. */
  readonly cause: unknown;
  /** The operation that goes on after the answer. */
  readonly operation: string | null;
  readonly requestId: string | null;
  readonly tookMs: number;
  /** Who asked, where they were not let in: a 401, or a 429 for too many guesses. */
  readonly refused: RefusedCaller | null;
}

/** As much as may be told of a caller who was not let in. */
export interface RefusedCaller {
  /** The IPv4 address or IPv6 network, in printable characters. */
  readonly network: string;
  /** The user name only if a credential has it: what is nobody's name may be a password that was typed in its place. */
  readonly user: { readonly kind: "known"; readonly name: string } | { readonly kind: "unknown" | "none" };
}

/** A name out of the catalog; "unknown" for an id that it does not have; `null` if the request named none. */
export type NamedInRequest = string | null;

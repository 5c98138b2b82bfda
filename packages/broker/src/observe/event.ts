import type { JournalEvent, OperationFacts, StoreAnswered } from "@osbert/journal";
import type { BrokerErrorCode } from "@osbert/protocol";
import type { RequestAnswered as AnyRequestAnswered, Observe } from "@osbert/server/observe";
import type { PassedOver } from "../records/forced-result.js";
import type { InstanceAddress } from "../records/instance-key.js";
import type { OperationAddress } from "./operation-address.js";

/**
 * Everything about a broker that is worth telling, in one union: its requests, its operations, its store. Adapters turn it into logs,
 * metrics and traces. Nothing here carries parameters, credentials, state or results; an error carries what its author wrote into it.
 */
export type BrokerEvent =
  | RequestAnswered
  | CatalogWarning
  | CatalogRefused
  | PassedOverByForce
  | StoreAnswered
  | (OperationEvent & OperationAddress)
  | (ResourceEvent & InstanceAddress)
  | Exclude<JournalEvent, OperationFacts | { readonly key: string }>;

/** Told of everything, at once. What it throws is swallowed. `logs`: it tells a person of warnings and errors, as `logTo` does. */
export interface Observer extends Observe<BrokerEvent> {}

export type OperationEvent = Extract<JournalEvent, OperationFacts>;
export type ResourceEvent = Extract<Exclude<JournalEvent, OperationFacts>, { readonly key: string }>;

/** A forced deletion is about to end that did not wait for some of the author's functions to end well. */
export interface PassedOverByForce extends InstanceAddress {
  readonly kind: "passed over";
  readonly operation: string;
  readonly calls: readonly PassedOver[];
}

/** Of a catalog that is offered from now on: what is allowed, but advised against, or says less than the service's own schema. */
export interface CatalogWarning {
  readonly kind: "catalog warning";
  /** `services[0].plans[2].id`. */
  readonly path: string;
  readonly message: string;
}

/** A source gave services that cannot be offered. What was offered before stays. */
export interface CatalogRefused {
  readonly kind: "catalog refused";
  readonly error: unknown;
}

export interface RequestAnswered extends AnyRequestAnswered {
  readonly instance: string | null;
  readonly binding: string | null;
  readonly service: NamedInRequest;
  readonly plan: NamedInRequest;
  readonly errorCode: BrokerErrorCode | null;
  /** The operation that goes on after the answer. */
  readonly operation: string | null;
}

/** A name out of the catalog; "unknown" for an id that it does not have; `null` if the request named none. */
export type NamedInRequest = string | null;

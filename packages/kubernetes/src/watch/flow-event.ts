import type { Condition, SharedState } from "../flows/flow-record.js";
import type { What } from "../flows/pass.js";

/** What happens to flows, in the process that follows their namespace: for a log, for metrics. */
export type FlowEvent = FlowConditionChanged | BrokerStateChanged | ClusterChanged | ClusterRefused | NamespaceLookedAt;

/** Told of all of it. What it throws is lost. */
export type FlowObserver = (event: FlowEvent) => void;

export interface FlowConditionChanged {
  readonly kind: "flow condition";
  readonly namespace: string;
  readonly flow: string;
  readonly application: string;
  readonly condition: Condition;
  /** How long it was otherwise; `null`: it was never said before. */
  readonly afterMs: number | null;
  /** Since the flow was claimed. */
  readonly sinceClaimMs: number;
}

/** The Broker that the flows of a namespace share. */
export interface BrokerStateChanged {
  readonly kind: "broker state";
  readonly namespace: string;
  readonly from: SharedState;
  readonly to: SharedState;
  readonly holders: number;
}

export interface ClusterChanged {
  readonly kind: "cluster changed";
  readonly namespace: string;
  readonly what: What;
  readonly done: "applied" | "removed";
  readonly name: string;
}

/** The cluster did not do what it was asked for; it is asked again. */
export interface ClusterRefused {
  readonly kind: "cluster refused";
  readonly namespace: string;
  readonly what: What;
  readonly name: string;
  readonly error: unknown;
}

export interface NamespaceLookedAt {
  readonly kind: "namespace looked at";
  readonly namespace: string;
  readonly tookMs: number;
  readonly flows: readonly { readonly application: string; readonly ready: Condition["status"] }[];
  readonly brokerState: SharedState;
  /** After so long it is looked at again, by whichever process. */
  readonly againMs: number;
}

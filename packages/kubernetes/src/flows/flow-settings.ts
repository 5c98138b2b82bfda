import type { ObjectKind } from "../cluster/cluster-object.js";

/** How flows are wired, told and cleared away. */
export interface FlowSettings {
  /** Where the channels of applications are, and their Subscriptions. */
  readonly integrationNamespace: string;
  /** The label of a channel that names its application. */
  readonly channelLabel: string;
  /** The kind of the channels: any that Knative's Subscriptions take. */
  readonly channelKind: ObjectKind;
  /** The name of the Broker that every namespace has one of. */
  readonly brokerName: string;
  readonly brokerClass: string;
  /** What a Broker is made with: `spec.config` and `spec.delivery`. */
  readonly brokerSpec: Readonly<Record<string, unknown>>;
  /** What becomes of a Broker that was made for flows when the last one is gone. Foreign Triggers keep it, unless `always`. */
  readonly deleteBroker: "never" | "whenUnused" | "always";
  readonly lingerMs: number;
  /** Policies for a service mesh: `required` fails where the mesh is not there, `optional` goes without. */
  readonly policies: "none" | "optional" | "required";
  /** Who delivers into Brokers, for policies. */
  readonly deliverers: readonly string[];
  /** Where Knative runs what all namespaces share. */
  readonly systemNamespace: string;
  /** Mirrors flows as EventFlow objects, where the cluster knows these. */
  readonly mirror: boolean;
  /** What a provision does where a plan does not say. */
  readonly readiness: Readiness;
  /** A provision has ended by then: degraded, or failed where readiness is required. */
  readonly softDeadlineMs: number;
  /** So long an application, the kinds of Knative and a namespace may take to appear while a provision waits for them. */
  readonly appearMs: number;
  /** The same of a grant. */
  readonly grantMs: number;
  /** A Broker that the cluster has refused for so long, so often, it will refuse. */
  readonly refusedMs: number;
  readonly refusedTimes: number;
  /** What stays broken by itself is made anew after so long, then after twice as long, and so on. */
  readonly repairMs: number;
  /** A condition is told to be false only after it was so for this long. */
  readonly debounceMs: number;
  /** A condition that has changed does not change back sooner. */
  readonly hysteresisMs: number;
  /** Without any news from the cluster, flows are looked at this often. */
  readonly resyncMs: number;
}

/** Whether an instance is there only when its events flow, or as soon as all that it takes was accepted. */
export type Readiness = "required" | "eventual";

const minuteMs = 60_000;

export const defaultFlowSettings: FlowSettings = {
  integrationNamespace: "kyma-integration",
  channelLabel: "application-name",
  channelKind: { group: "messaging.knative.dev", version: "v1", kind: "Channel", plural: "channels", namespaced: true },
  brokerName: "default",
  brokerClass: "MTChannelBasedBroker",
  brokerSpec: {},
  deleteBroker: "whenUnused",
  lingerMs: 5 * minuteMs,
  policies: "none",
  deliverers: ["cluster.local/ns/knative-eventing/sa/imc-dispatcher"],
  systemNamespace: "knative-eventing",
  mirror: true,
  readiness: "eventual",
  softDeadlineMs: 15 * minuteMs,
  appearMs: 2 * minuteMs,
  grantMs: 10 * minuteMs,
  refusedMs: 10 * minuteMs,
  refusedTimes: 5,
  repairMs: minuteMs,
  debounceMs: 10_000,
  hysteresisMs: 30_000,
  resyncMs: 10 * minuteMs,
};

export const kinds = {
  namespace: { group: "", version: "v1", kind: "Namespace", plural: "namespaces", namespaced: false },
  broker: { group: "eventing.knative.dev", version: "v1", kind: "Broker", plural: "brokers", namespaced: true },
  trigger: { group: "eventing.knative.dev", version: "v1", kind: "Trigger", plural: "triggers", namespaced: true },
  subscription: {
    group: "messaging.knative.dev",
    version: "v1",
    kind: "Subscription",
    plural: "subscriptions",
    namespaced: true,
  },
  peerAuthentication: {
    group: "security.istio.io",
    version: "v1",
    kind: "PeerAuthentication",
    plural: "peerauthentications",
    namespaced: true,
  },
  authorizationPolicy: {
    group: "security.istio.io",
    version: "v1",
    kind: "AuthorizationPolicy",
    plural: "authorizationpolicies",
    namespaced: true,
  },
  eventFlow: {
    group: "events.osbert.io",
    version: "v1alpha1",
    kind: "EventFlow",
    plural: "eventflows",
    namespaced: true,
  },
} as const satisfies Readonly<Record<string, ObjectKind>>;

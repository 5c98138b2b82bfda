import { defineResource } from "@osbert/journal";
import { objectName } from "../cluster/object-name.js";

/**
 * What is kept of the event flows of a namespace: one resource, because they share its Broker. Whoever needs the Broker holds a claim on it; whatever
 * is written to the cluster for them is written by the one operation that follows the namespace.
 */
export interface NamespaceShape {
  readonly data: NamespaceData;
  readonly parts: {
    readonly [flow: FlowPart]: FlowRecord;
    readonly [wire: WirePart]: WireRecord;
  };
  readonly operations: { readonly [followKind]: { readonly input: null; readonly result: null } };
}

export const followKind = "events.follow";

export const namespaceResource = defineResource<NamespaceShape>();

export type FlowPart = `flow/${string}`;
export type WirePart = `wire/${string}`;
export const flowPrefix = "flow/";
export const wirePrefix = "wire/";

export function flowPart(id: string): FlowPart {
  return `${flowPrefix}${id}`;
}

export function wirePart(application: string): WirePart {
  return `${wirePrefix}${application}`;
}

/** The id of the flow of an instance: for ever the same, because claims and mirrors are found by it. */
export function flowId(platform: string, instance: string): string {
  return objectName("flow", platform, instance);
}

export const namespaceKeyPrefix = "events.namespace.";

/** A name of a namespace has no slash in it: such a key is never that of an instance. */
export function namespaceKey(namespace: string): string {
  return `${namespaceKeyPrefix}${namespace}`;
}

/** Flows of one namespace: with a wire each, all of them fit into one decision of the journal. */
export const mostFlows = 450;

export interface NamespaceData {
  readonly namespace: string;
  /** The flows that need the Broker. A set of holders instead of a number: claiming or releasing twice is doing it once. */
  readonly holders: readonly string[];
  /** Those whose events flow in, or are to: so it is found which namespaces the news of one are for. */
  readonly applications: readonly string[];
  /** Flows that were released a short while ago: a claim from before that comes too late. */
  readonly released: Readonly<Record<string, Release>>;
  readonly broker: SharedBroker;
  /** Why the policies could not be made at the last try. */
  readonly policyTrouble?: string | null;
}

export interface Release {
  /** The number of the operation that released it. */
  readonly operation: number;
  readonly at: number;
  /** The instance, whose operation may wait until its events have stopped. */
  readonly platform: string;
  readonly instance: string;
  /** What it received. `null`: it never claimed. */
  readonly application: string | null;
}

/**
 * How far a shared object is. `ensuring`: wanted, and not seen yet. `present`: seen. `lingering`: nobody needs it any more, and it is not deleted
 * before its time. `deleting`: it was decided to delete it, and that is not undone: who needs it meanwhile waits until it is gone and gets a new one.
 */
export type SharedState = "absent" | "ensuring" | "present" | "lingering" | "deleting";

export interface SharedBroker {
  readonly state: SharedState;
  /** It was there before us, or is another one's: it is only read. */
  readonly adopted: boolean;
  readonly uid: string | null;
  /** Goes up with every deletion. */
  readonly epoch: number;
  readonly lingerUntil: number | null;
  readonly refused: Refusals | null;
  /** Why what was last tried with it could not be done, and may be later. */
  readonly trouble?: string | null;
  /** Why one that no flow needs any more is kept. */
  readonly kept?: string | null;
  /** How often it was made anew because it had stayed broken. */
  readonly repairs?: Repairs | null;
}

export interface Repairs {
  readonly times: number;
  readonly lastAt: number;
}

/** What the cluster has said no to, again and again. */
export interface Refusals {
  readonly times: number;
  readonly since: number;
  readonly lastAt: number;
  readonly message: string;
}

/** The Subscription that carries the events of an application into the namespace, for all flows of the two. */
export interface WireRecord {
  readonly application: string;
  /** The name of the Subscription. */
  readonly name: string;
  /** The flows that it was last seen to be needed by. */
  readonly holders: readonly string[];
  readonly state: Exclude<SharedState, "lingering">;
  readonly uid: string | null;
  readonly refused: Refusals | null;
  /** Why what was last tried with it could not be done, and may be later. */
  readonly trouble?: string | null;
  /** It delivers as was said until then. */
  readonly deliveryAt: number;
  readonly repairs: Repairs | null;
}

/** What an instance wants, and how it is. It lives as long as its instance, whatever becomes of operations. */
export interface FlowRecord {
  /** Whose flow it is: as the platform names it. */
  readonly platform: string;
  readonly instance: string;
  /** What its user calls it, where the platform says so. */
  readonly instanceName?: string;
  /** The number of the operation that claimed last. */
  readonly operation: number;
  readonly application: string;
  /** The id of the application's service. */
  readonly service: string;
  readonly delivery: Delivery | null;
  /** When the delivery was last said: of flows that share a wire, the latest word counts. */
  readonly deliveryAt: number;
  readonly since: number;
  /** When all that it needs was there for the first time. */
  readonly activatedAt: number | null;
  readonly conditions: readonly Condition[];
}

/** How often, how fast and where to else events are delivered: as a Subscription takes it. */
export interface Delivery {
  readonly retry?: number;
  readonly backoffPolicy?: "linear" | "exponential";
  /** ISO 8601, such as PT1S. */
  readonly backoffDelay?: string;
  readonly timeout?: string;
  readonly deadLetterSink?: {
    readonly ref?: {
      readonly apiVersion: string;
      readonly kind: string;
      readonly name: string;
      readonly namespace?: string;
    };
    readonly uri?: string;
  };
}

export const conditionTypes = ["Granted", "SourceReady", "SinkReady", "PolicyReady", "SubscriptionReady"] as const;

/** `Ready` is all of them. */
export type ConditionType = (typeof conditionTypes)[number] | "Ready";

export type ConditionStatus = "True" | "False" | "Unknown";

export interface Condition {
  readonly type: ConditionType;
  readonly status: ConditionStatus;
  /** One word for programs: one of `ownReasons`, or what Knative's objects say of themselves. */
  readonly reason: string;
  /** A sentence for people. */
  readonly message: string;
  /** When the status has changed last. */
  readonly since: number;
  /** When the reason has changed last, where that is later. */
  readonly reasonSince?: number;
}

/** All words that are said here of why a condition is as it is. */
export const ownReasons = [
  ...(["Granted", "GrantRevoked", "ApplicationsUnknown", "ClusterSilent", "Gone", "ChannelMissing"] as const),
  ...(["SeveralChannels", "NamespaceGone", "KnativeMissing", "Deleting", "Refused", "BrokerMissing"] as const),
  ...(["ForeignChange", "NotWanted", "PolicySkipped", "MeshMissing", "Applied", "PolicyMissing"] as const),
  ...(["SubscriptionMissing", "Ready", "Flowing", "NoStatus", "Outdated", "NotReady"] as const),
] as const;

export type OwnReason = (typeof ownReasons)[number];

/** Something is to be followed; beside it, only what is left of wires. */
export function isHeld({ holders, broker, released }: NamespaceData): boolean {
  return holders.length > 0 || broker.state !== "absent" || Object.keys(released).length > 0;
}

export function newNamespace(namespace: string): NamespaceData {
  return { namespace, holders: [], applications: [], released: {}, broker: absentBroker(0) };
}

export function absentBroker(epoch: number): SharedBroker {
  return { state: "absent", adopted: false, uid: null, epoch, lingerUntil: null, refused: null };
}

export function conditionOf(
  { conditions }: Pick<FlowRecord, "conditions">,
  type: ConditionType,
): Condition | undefined {
  return conditions.find((condition) => condition.type === type);
}

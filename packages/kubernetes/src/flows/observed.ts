import type { ClusterObject } from "../cluster/cluster-object.js";

/** What was seen of a namespace and of all that its flows touch, at one moment. */
export interface Observed {
  /** Why what is seen may be old, or lack something: then nothing is concluded from what is missing, and nothing is deleted. `null`: it is up to date. */
  readonly behind: string | null;
  readonly namespace: "active" | "deleting" | "gone";
  /** The kinds that flows are made of. */
  readonly knative: "here" | "missing";
  readonly broker: SeenBroker | undefined;
  readonly applications: ReadonlyMap<string, SeenApplication>;
  /** By name: those of ours for this namespace, and those that its wires name. */
  readonly subscriptions: ReadonlyMap<string, SeenSubscription>;
  readonly policies: { readonly kinds: "here" | "missing"; readonly seen: readonly SeenPolicy[] };
  /** `missing`: there is no such kind, or none that may be looked at, and nothing is mirrored. `unknown`: what is seen may lack something. */
  readonly mirror: { readonly kind: "here" | "missing" | "unknown"; readonly seen: ReadonlyMap<string, SeenMirror> };
}

export interface SeenObject {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** It carries our label. */
  readonly ours: boolean;
  readonly deleting: boolean;
}

export interface SeenReadiness {
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
}

export interface SeenBroker extends SeenObject {
  readonly class: string | null;
  /** Which of the Brokers that were made for the namespace it is. */
  readonly epoch: string | null;
  readonly spec: unknown;
  readonly ready: SeenReadiness;
  readonly address: string | null;
}

export interface SeenChannel extends SeenObject {
  readonly apiVersion: string;
  readonly kind: string;
  /** Of the application whose events come through it. */
  readonly application: string;
  readonly ready: SeenReadiness;
}

export interface SeenSubscription extends SeenObject {
  readonly spec: unknown;
  readonly ready: SeenReadiness;
}

export interface SeenPolicy extends SeenObject {
  readonly kind: string;
  readonly spec: unknown;
}

export interface SeenMirror extends SeenObject {
  readonly spec: unknown;
  readonly status: unknown;
  /** Somebody has asked for no more repairs. */
  readonly paused: boolean;
}

export interface SeenApplication {
  /** `unknown`: what is known of applications is not up to date. */
  readonly exists: boolean | "unknown";
  /** Ids of its services that the namespace may have. */
  readonly granted: ReadonlySet<string> | "unknown";
  readonly channels: readonly SeenChannel[];
}

/** The condition `Ready` of an object that tells of itself as Knative's do. Hostile input: whatever it is, this is what comes of it. */
export function readinessOf({ status, metadata }: ClusterObject): SeenReadiness {
  const conditions = isRecord(status) ? status.conditions : undefined;
  const found = Array.isArray(conditions)
    ? conditions.find((condition) => isRecord(condition) && condition.type === "Ready")
    : undefined;
  if (!isRecord(found))
    return { status: "Unknown", reason: "NoStatus", message: "it does not say yet whether it is ready" };
  const { observedGeneration } = isRecord(status) ? status : {};
  if (typeof observedGeneration === "number" && observedGeneration < (metadata.generation ?? 0))
    return { status: "Unknown", reason: "Outdated", message: "its status is of what it was before" };
  const said = found.status === "True" || found.status === "False" ? found.status : "Unknown";
  return {
    status: said,
    reason: text(found.reason, 100) ?? (said === "True" ? "Ready" : "NotReady"),
    message: text(found.message, 500) ?? "",
  };
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Bounded; a character that the bound would halve is left out. */
export function text(value: unknown, most: number): string | undefined {
  return typeof value === "string" && value !== "" ? value.slice(0, most).replace(/[\ud800-\udbff]$/, "") : undefined;
}

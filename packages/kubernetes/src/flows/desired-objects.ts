import { apiVersionOf, type ClusterObject, type ObjectKind } from "../cluster/cluster-object.js";
import { labelValue, objectName } from "../cluster/object-name.js";
import { type Condition, conditionOf, type Delivery, type FlowRecord } from "./flow-record.js";
import { type FlowSettings, kinds } from "./flow-settings.js";
import { isRecord, type SeenChannel, type SeenPolicy } from "./observed.js";

/** An object as it is to be, and its kind. */
export interface Desired {
  readonly kind: ObjectKind;
  readonly object: ClusterObject;
}

export const managedByLabel = "app.kubernetes.io/managed-by";
export const managedBy = "osbert";
/** Whose they are of several that work in one cluster: each has an integration namespace of its own. */
export const integrationLabel = "events.osbert.io/integration";
export const applicationLabel = "events.osbert.io/application";
export const namespaceLabel = "events.osbert.io/namespace";
export const pausedAnnotation = "events.osbert.io/paused";
export const brokerClassAnnotation = "eventing.knative.dev/broker.class";
export const epochAnnotation = "events.osbert.io/epoch";

/** Objects with these labels are ours: others of the same names are only read. */
export function ownLabels({ integrationNamespace }: FlowSettings): Readonly<Record<string, string>> {
  return { [managedByLabel]: managedBy, [integrationLabel]: labelValue(integrationNamespace) };
}

export function isOwn({ metadata: { labels = {} } }: ClusterObject, settings: FlowSettings): boolean {
  return says(labels, ownLabels(settings));
}

/** With the number of deletions before it: so the first apply after one changes the object, and a delete from before that comes late misses it. */
export function brokerObject(namespace: string, epoch: number, settings: FlowSettings): Desired {
  const { brokerName, brokerClass, brokerSpec } = settings;
  return {
    kind: kinds.broker,
    object: {
      apiVersion: apiVersionOf(kinds.broker),
      kind: kinds.broker.kind,
      metadata: {
        name: brokerName,
        namespace,
        labels: ownLabels(settings),
        annotations: { [brokerClassAnnotation]: brokerClass, [epochAnnotation]: String(epoch) },
      },
      ...(Object.keys(brokerSpec).length > 0 && { spec: brokerSpec }),
    },
  };
}

/** One for an application and a namespace, however many flows there are between the two: else every event would come as often. */
export function subscriptionName(application: string, namespace: string): string {
  return objectName("flow", application, namespace);
}

export function subscriptionObject(
  { application, namespace, name }: { readonly application: string; readonly namespace: string; readonly name: string },
  channel: SeenChannel,
  delivery: Delivery | null,
  settings: FlowSettings,
): Desired {
  return {
    kind: kinds.subscription,
    object: {
      apiVersion: apiVersionOf(kinds.subscription),
      kind: kinds.subscription.kind,
      metadata: {
        name,
        namespace: channel.namespace,
        labels: {
          ...ownLabels(settings),
          [applicationLabel]: labelValue(application),
          [namespaceLabel]: labelValue(namespace),
        },
      },
      spec: {
        channel: { apiVersion: channel.apiVersion, kind: channel.kind, name: channel.name },
        // By reference, so that Knative finds out where that is.
        subscriber: {
          ref: {
            apiVersion: apiVersionOf(kinds.broker),
            kind: kinds.broker.kind,
            namespace,
            name: settings.brokerName,
          },
        },
        ...(delivery !== null && { delivery }),
      },
    },
  };
}

/** Broker classes whose data plane runs in the namespace of the Broker. Of all others it is shared by all namespaces. */
const namespacedClasses: ReadonlySet<string> = new Set(["KafkaNamespaced"]);

/** Whether the Brokers of a class have their data plane in their own namespaces. */
export function isNamespacedClass(brokerClass: string): boolean {
  return namespacedClasses.has(brokerClass);
}

/**
 * The policies that let events into the Broker of a namespace, by where its data plane runs: beside Knative, where only the path tells namespaces
 * apart, or in the namespace itself.
 */
export function policyObjects(namespace: string, settings: FlowSettings): readonly Desired[] {
  if (settings.policies === "none") return [];
  const { brokerName, brokerClass, deliverers, systemNamespace, integrationNamespace } = settings;
  const name = objectName("flow", integrationNamespace, namespace);
  const labels = { ...ownLabels(settings), [namespaceLabel]: labelValue(namespace) };
  const ingress = { matchLabels: { "eventing.knative.dev/brokerRole": "ingress" } };
  const isNamespaced = isNamespacedClass(brokerClass);
  const allow = policy(kinds.authorizationPolicy, {
    metadata: { name, namespace: isNamespaced ? namespace : systemNamespace, labels },
    spec: {
      selector: ingress,
      action: "ALLOW",
      rules: [
        {
          from: [{ source: { principals: deliverers } }],
          to: [{ operation: { methods: ["POST"], paths: [isNamespaced ? "/" : `/${namespace}/${brokerName}`] } }],
        },
      ],
    },
  });
  if (!isNamespaced) return [allow];
  const metrics = policy(kinds.peerAuthentication, {
    metadata: { name, namespace, labels },
    spec: { selector: ingress, mtls: { mode: "STRICT" }, portLevelMtls: { "9090": { mode: "PERMISSIVE" } } },
  });
  return [metrics, allow];
}

/** One of those that are seen is the desired one, and says what it is to say. */
export function hasPolicy(seen: readonly SeenPolicy[], desired: Desired): boolean {
  return seen.some((each) => isPolicyOf(each, desired) && !each.deleting && says(each.spec, desired.object.spec));
}

export function isPolicyOf(seen: SeenPolicy, { kind, object }: Desired): boolean {
  return kind.kind === seen.kind && object.metadata.name === seen.name && object.metadata.namespace === seen.namespace;
}

function policy(kind: ObjectKind, rest: Pick<ClusterObject, "metadata" | "spec">): Desired {
  return { kind, object: { apiVersion: apiVersionOf(kind), kind: kind.kind, ...rest } };
}

export function eventFlowObject(id: string, namespace: string, flow: FlowRecord, settings: FlowSettings): Desired {
  return {
    kind: kinds.eventFlow,
    object: {
      apiVersion: apiVersionOf(kinds.eventFlow),
      kind: kinds.eventFlow.kind,
      metadata: { name: id, namespace, labels: ownLabels(settings) },
      spec: { source: flow.application, service: flow.service, instance: flow.instance },
    },
  };
}

/** The times of Kubernetes are whole seconds. */
export function eventFlowStatus(flow: FlowRecord, sinkUri: string | null): Readonly<Record<string, unknown>> {
  const ready = conditionOf(flow, "Ready");
  const first = ready === undefined ? [] : [ready];
  const conditions = [...first, ...flow.conditions.filter(({ type }) => type !== "Ready")];
  return { conditions: conditions.map(toWire), ...(sinkUri !== null && { sinkUri }) };
}

function toWire({ type, status, reason, message, since }: Condition): Readonly<Record<string, string>> {
  const lastTransitionTime = `${new Date(since).toISOString().slice(0, 19)}Z`;
  return { type, status, reason, message, lastTransitionTime };
}

/** Whether an object says all that is desired; what the cluster or others have added does not matter. */
export function says(seen: unknown, desired: unknown): boolean {
  if (Array.isArray(desired)) {
    return Array.isArray(seen) && seen.length === desired.length && desired.every((each, at) => says(seen[at], each));
  }
  if (!isRecord(desired)) return seen === desired;
  return isRecord(seen) && Object.entries(desired).every(([name, value]) => says(seen[name], value));
}

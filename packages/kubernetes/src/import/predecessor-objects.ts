import type { Cluster } from "../cluster/cluster.js";
import { ClusterError } from "../cluster/cluster-error.js";
import type { ClusterObject, ObjectKind } from "../cluster/cluster-object.js";
import { type FlowSettings, kinds } from "../flows/flow-settings.js";

/** What the application broker and the platform that it served have left in a cluster. */
export interface PredecessorObjects {
  readonly instances: readonly ClusterObject[];
  /** Of namespaces and of the cluster: what instances refer to. */
  readonly classes: readonly ClusterObject[];
  readonly plans: readonly ClusterObject[];
  /** Those of the integration namespace that carry the label of the application broker. */
  readonly subscriptions: readonly ClusterObject[];
  readonly namespaces: readonly ClusterObject[];
  /** Those that flows of a namespace end in. */
  readonly brokers: readonly ClusterObject[];
}

/** The labels of the application broker. */
export const predecessorLabels = {
  /** Of a Subscription: where its events go. */
  namespace: "broker-namespace",
  application: "application-name",
  /** Since 2020 alone. */
  service: "application-service-id",
  /** Of a namespace: Knative has made a Broker there. */
  injection: "knative-eventing-injection",
} as const;

function catalogKind(kind: string, plural: string, namespaced: boolean): ObjectKind {
  return { group: "servicecatalog.k8s.io", version: "v1beta1", kind, plural, namespaced };
}

export const catalogKinds = {
  instance: catalogKind("ServiceInstance", "serviceinstances", true),
  class: catalogKind("ServiceClass", "serviceclasses", true),
  clusterClass: catalogKind("ClusterServiceClass", "clusterserviceclasses", false),
  plan: catalogKind("ServicePlan", "serviceplans", true),
  clusterPlan: catalogKind("ClusterServicePlan", "clusterserviceplans", false),
} as const;

/** Reads all of it, and nothing but reads. Rejects where the cluster has no ServiceInstances, or does not let them be read. */
export async function readPredecessorObjects(
  cluster: Cluster,
  { integrationNamespace, brokerName }: FlowSettings,
  signal?: AbortSignal,
): Promise<PredecessorObjects> {
  const call = signal === undefined ? {} : { signal };
  const all = async (kind: ObjectKind, options: object = {}) => {
    const objects: ClusterObject[] = [];
    // A list that began anew may tell of an object twice.
    const seen = new Set<string>();
    for await (const object of cluster.list(kind, { ...call, ...options })) {
      const { namespace = "", name } = object.metadata;
      if (!seen.has(`${namespace}/${name}`)) objects.push(object);
      seen.add(`${namespace}/${name}`);
    }
    return objects;
  };
  const ifKnown = (kind: ObjectKind) => all(kind).catch(noneIfMissing);
  return {
    instances: await all(catalogKinds.instance),
    classes: [...(await ifKnown(catalogKinds.class)), ...(await ifKnown(catalogKinds.clusterClass))],
    plans: [...(await ifKnown(catalogKinds.plan)), ...(await ifKnown(catalogKinds.clusterPlan))],
    subscriptions: await all(kinds.subscription, {
      namespace: integrationNamespace,
      labels: predecessorLabels.namespace,
    }),
    namespaces: await all(kinds.namespace),
    brokers: await all(kinds.broker, { fields: `metadata.name=${brokerName}` }),
  };
}

/** The ids of a class may also stand in the instance itself. */
function noneIfMissing(error: unknown): ClusterObject[] {
  if (error instanceof ClusterError && error.failure === "no such kind") return [];
  throw error;
}

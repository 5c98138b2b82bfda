import { isJsonObject, type JsonObject } from "@osbert/protocol";
import type { ClusterObject } from "../cluster/cluster-object.js";
import { isRecord, text } from "../flows/observed.js";

/** What is known of a ServiceInstance of the platform, as far as it matters to its broker. */
export interface FoundInstance {
  readonly namespace: string;
  /** Of the resource. */
  readonly name: string;
  /** By which broker and platform speak of it. */
  readonly id: string;
  readonly serviceId: string;
  readonly planId: string;
  readonly parameters: JsonObject;
  /** Some of its parameters are in Secrets, which are not read. */
  readonly hasSecretParameters: boolean;
  /** Its platform is about to delete it. */
  readonly deleting: boolean;
}

/** The classes and plans that instances refer to, by namespace and name; of those without a namespace, it is "". */
export interface CatalogObjects {
  readonly classes: ReadonlyMap<string, ClusterObject>;
  readonly plans: ReadonlyMap<string, ClusterObject>;
}

export type ReadInstance =
  | { readonly kind: "instance"; readonly instance: FoundInstance }
  /** Another broker's: it is none of our business. */
  | { readonly kind: "foreign" }
  | { readonly kind: "unusable"; readonly why: string };

/** Hostile input: whatever it is, one of these comes of it. `broker`: the name under which the platform knew the application broker. */
export function readServiceInstance(
  object: ClusterObject,
  { classes, plans }: CatalogObjects,
  broker: string,
): ReadInstance {
  const { namespace = "", name } = object.metadata;
  const spec = isRecord(object.spec) ? object.spec : {};
  const status = isRecord(object.status) ? object.status : {};
  const accepted = isRecord(status.externalProperties) ? status.externalProperties : {};
  const ofClass = referred(classes, namespace, spec.serviceClassRef, spec.clusterServiceClassRef);
  const ofPlan = referred(plans, namespace, spec.servicePlanRef, spec.clusterServicePlanRef);
  const brokerOfClass = text(ofClass.spec?.serviceBrokerName, 253) ?? text(ofClass.spec?.clusterServiceBrokerName, 253);
  if (brokerOfClass !== undefined && brokerOfClass !== broker) return { kind: "foreign" };
  const id = text(spec.externalID, 400);
  const serviceId = first(
    spec.serviceClassExternalID,
    spec.clusterServiceClassExternalID,
    ofClass.spec?.externalID,
    ofClass.name,
  );
  // What the broker has accepted last comes before what is wanted.
  const planId = first(
    ...[accepted.servicePlanExternalID, accepted.clusterServicePlanExternalID],
    ...[spec.servicePlanExternalID, spec.clusterServicePlanExternalID, ofPlan.spec?.externalID, ofPlan.name],
  );
  if (id === undefined) return unusable("it has no external id");
  if (serviceId === undefined || planId === undefined) return unusable("the platform has not found its class and plan");
  if (!isProvisioned(status))
    return unusable("it is not provisioned: the platform asks for it anew, and it is made then");
  const { parametersFrom } = spec;
  return {
    kind: "instance",
    instance: {
      ...{ namespace, name, id, serviceId, planId },
      parameters: isJsonObject(spec.parameters) ? spec.parameters : {},
      hasSecretParameters: Array.isArray(parametersFrom) && parametersFrom.length > 0,
      deleting: object.metadata.deletionTimestamp !== undefined,
    },
  };
}

/** What it refers to; of a class or plan that cannot be found, its name, which is mostly its id. */
function referred(
  objects: ReadonlyMap<string, ClusterObject>,
  namespace: string,
  ref: unknown,
  clusterRef: unknown,
): { readonly name: string | undefined; readonly spec: Readonly<Record<string, unknown>> | undefined } {
  const [place, found] = isRecord(ref) ? [namespace, ref] : ["", isRecord(clusterRef) ? clusterRef : {}];
  const name = text(found.name, 253);
  const spec = name === undefined ? undefined : objects.get(`${place}/${name}`)?.spec;
  return { name, spec: isRecord(spec) ? spec : undefined };
}

function first(...values: readonly unknown[]): string | undefined {
  return values.map((value) => text(value, 400)).find((value) => value !== undefined);
}

/** The broker has made it, and has not removed it since. One whose update failed, or whose deletion has only begun, is there. */
function isProvisioned(status: Readonly<Record<string, unknown>>): boolean {
  if (status.deprovisionStatus === "Succeeded") return false;
  if (status.provisionStatus === "Provisioned") return true;
  const conditions = Array.isArray(status.conditions) ? status.conditions : [];
  return conditions.some((each) => isRecord(each) && each.type === "Ready" && each.status === "True");
}

function unusable(why: string): ReadInstance {
  return { kind: "unusable", why };
}

import type { JsonObject } from "./json.js";

/** Where the request comes from, as the platform tells it. Names and annotations change over time: they identify nothing. */
export type Context = CloudFoundryContext | KubernetesContext | OtherContext;

export interface CloudFoundryContext extends JsonObject {
  readonly platform: "cloudfoundry";
  readonly organization_guid: string;
  readonly space_guid: string;
}

export interface KubernetesContext extends JsonObject {
  readonly platform: "kubernetes";
  readonly namespace: string;
  readonly clusterid: string;
}

export type OtherContext = JsonObject;

/** What may change in a context without the request being another one: names, annotations and the cluster's id (PROF-06). */
export function isVolatileContextField(name: string): boolean {
  return name.endsWith("_name") || name.endsWith("_annotations") || name === "clusterid";
}

/** The context without what may change: equal for requests from the same place. */
export function stableContext(context: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(context).filter(([name]) => !isVolatileContextField(name)));
}

/** A kind of objects, as the paths of an API server name it. */
export interface ObjectKind {
  /** "" for those of the core. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  /** Its objects lie in namespaces. */
  readonly namespaced: boolean;
}

/** Which object of a kind. */
export interface ObjectPlace {
  /** "" for kinds without namespaces. */
  readonly namespace: string;
  readonly name: string;
}

/** An object as an API server tells it. Whatever is not metadata comes from outside: it has to be looked at before it is believed. */
export interface ClusterObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMetadata;
  readonly [field: string]: unknown;
}

export interface ObjectMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  /** It is being deleted. */
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly {
    readonly apiVersion: string;
    readonly kind: string;
    readonly name: string;
    readonly uid: string;
    readonly controller?: boolean;
  }[];
}

export function apiVersionOf({ group, version }: ObjectKind): string {
  return group === "" ? version : `${group}/${version}`;
}

export function placeOf({ metadata }: ClusterObject): ObjectPlace {
  return { namespace: metadata.namespace ?? "", name: metadata.name };
}

import { ClusterError } from "./cluster-error.js";
import type { ObjectKind, ObjectPlace } from "./cluster-object.js";

/** Where all objects of a kind are, or those of a namespace. */
export function collectionPath(kind: ObjectKind, namespace: string | undefined): string {
  const inNamespace =
    kind.namespaced && namespace !== undefined ? `/namespaces/${segment(namespace, "namespace")}` : "";
  return `${groupPath(kind)}${inNamespace}/${segment(kind.plural, "kind")}`;
}

/** Where one object is. Never the path of a collection: a `DELETE` there would remove all that is in it. */
export function objectPath(kind: ObjectKind, place: ObjectPlace): string {
  return `${collectionPath(kind, place.namespace)}/${segment(place.name, "name")}`;
}

/** Where a version of a group says which kinds it has. */
export function groupPath({ group, version }: ObjectKind): string {
  return group === ""
    ? `/api/${segment(version, "version")}`
    : `/apis/${segment(group, "group")}/${segment(version, "version")}`;
}

function segment(text: string, what: string): string {
  if (text === "" || text === "." || text === "..") {
    throw new ClusterError("invalid", `${JSON.stringify(text)} is no ${what}`);
  }
  return encodeURIComponent(text);
}

import type { ObjectKind } from "../cluster/cluster-object.js";

/** The kinds of objects that a job is made of. */
export const kinds = {
  configMap: core("ConfigMap", "configmaps"),
  secret: core("Secret", "secrets"),
  pod: core("Pod", "pods"),
  serviceAccount: core("ServiceAccount", "serviceaccounts"),
  namespace: { ...core("Namespace", "namespaces"), namespaced: false },
  job: { group: "batch", version: "v1", kind: "Job", plural: "jobs", namespaced: true },
  roleBinding: {
    ...{ group: "rbac.authorization.k8s.io", version: "v1", kind: "RoleBinding", plural: "rolebindings" },
    namespaced: true,
  },
  networkPolicy: {
    ...{ group: "networking.k8s.io", version: "v1", kind: "NetworkPolicy", plural: "networkpolicies" },
    namespaced: true,
  },
} as const satisfies Readonly<Record<string, ObjectKind>>;

function core(kind: string, plural: string): ObjectKind {
  return { group: "", version: "v1", kind, plural, namespaced: true };
}

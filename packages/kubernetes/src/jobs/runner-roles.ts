/** A rule of a role, as Kubernetes has it. */
export interface RoleRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** What the runner does in its own namespace. A Role there is enough, as long as bundles get neither a sandbox nor a role. */
export const jobRunnerRules: readonly RoleRule[] = [
  // Its uid is the runner's place.
  { apiGroups: [""], resources: ["namespaces"], verbs: ["get"] },
  { apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "create", "patch", "delete"] },
  { apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "create", "patch", "delete"] },
  { apiGroups: [""], resources: ["serviceaccounts"], verbs: ["get", "create", "delete"] },
  { apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "delete"] },
  { apiGroups: [""], resources: ["pods/log"], verbs: ["get"] },
  // A websocket is opened by a GET; newer servers ask for both.
  { apiGroups: [""], resources: ["pods/exec"], verbs: ["get", "create"] },
  { apiGroups: ["batch"], resources: ["jobs"], verbs: ["get", "list", "create", "patch", "delete"] },
  // Where the cluster holds back who may block a deletion (OpenShift does).
  { apiGroups: ["batch"], resources: ["jobs/finalizers"], verbs: ["update"] },
  { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: ["get", "create", "delete"] },
];

/**
 * The same with sandboxes and roles, as a ClusterRole: namespaces are made, and service accounts bound to exactly the roles that the operator
 * allows. `roles`: `role` and `sandboxRole` of the options.
 */
export function sandboxRunnerRules(roles: readonly string[]): readonly RoleRule[] {
  return [
    ...jobRunnerRules,
    { apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "create", "delete"] },
    { apiGroups: ["rbac.authorization.k8s.io"], resources: ["rolebindings"], verbs: ["get", "create", "delete"] },
    { apiGroups: ["rbac.authorization.k8s.io"], resources: ["clusterroles"], verbs: ["bind"], resourceNames: roles },
  ];
}

/** The ClusterRole `osbert-bundle-sandbox`: what a classic bundle does in the namespace that is made for one of its actions. */
export const sandboxRules: readonly RoleRule[] = [
  {
    apiGroups: [""],
    resources: ["secrets", "configmaps"],
    verbs: ["get", "list", "create", "update", "patch", "delete"],
  },
  { apiGroups: [""], resources: ["pods"], verbs: ["get", "patch"] },
];

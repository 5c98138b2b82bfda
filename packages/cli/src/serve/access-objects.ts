import { type AccessRule, eventAccess } from "@osbert/kubernetes";
import { flowSettings } from "../settings/flow-settings.js";
import type { Settings } from "../settings/table.js";

/** Who is granted it. */
export interface AccessFor {
  /** Of the ServiceAccount and of its roles. */
  readonly name: string;
  /** Where the broker runs. */
  readonly namespace: string;
}

/** The objects that grant a service account all that a broker for events with these settings asks of the cluster. */
export function accessObjects({ events }: Pick<Settings, "events">, { name, namespace }: AccessFor): readonly object[] {
  const { kinds, integrationNamespace, secretNamespace = integrationNamespace } = events;
  const access = eventAccess({ settings: flowSettings(events), kinds, secretNamespace });
  const subjects = [{ kind: "ServiceAccount", name, namespace }];
  const role = (
    kind: "Role" | "ClusterRole",
    rules: readonly AccessRule[],
    within: { readonly namespace?: string },
  ) => [
    { apiVersion: "rbac.authorization.k8s.io/v1", kind, metadata: { name, ...within }, rules },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: `${kind}Binding`,
      metadata: { name, ...within },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name },
      subjects,
    },
  ];
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } },
    ...role("ClusterRole", access.cluster, {}),
    ...access.namespaces.flatMap(({ namespace: within, rules }) => role("Role", rules, { namespace: within })),
  ];
}

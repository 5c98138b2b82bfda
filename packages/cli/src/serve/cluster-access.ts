import { delimiter, join } from "node:path";
import type { ClusterAccess } from "@osbert/kubernetes";
import type { Settings } from "../settings/table.js";
import { UserError } from "../user-error.js";

/** What of this machine tells where a cluster is. */
export interface AccessSurroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

/** The kubeconfig of the settings; else what kubectl would take. */
export function clusterAccess(
  { kubeconfig, context }: Settings["cluster"],
  { environment, home }: AccessSurroundings,
): ClusterAccess {
  const of = (file: string): ClusterAccess => ({
    kind: "kubeconfig",
    file,
    ...(context !== undefined && { context }),
  });
  if (kubeconfig !== undefined) return of(kubeconfig);
  const files = (environment.KUBECONFIG ?? "").split(delimiter).filter((file) => file !== "");
  // Each pod is told where the API server is. Who names a file there nonetheless wants that.
  if (files.length === 0 && context === undefined && environment.KUBERNETES_SERVICE_HOST) return { kind: "in cluster" };
  if (files.length > 1)
    throw new UserError(
      "KUBECONFIG names several files, which are not put together here; set cluster.kubeconfig to one",
    );
  return of(files[0] ?? join(home, ".kube", "config"));
}

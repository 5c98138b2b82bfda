import { homedir } from "node:os";
import { type Cluster, type ClusterAccess, ClusterError, type ClusterEvent, openCluster } from "@osbert/kubernetes";
import type { Logger } from "pino";
import type { Settings } from "../settings/table.js";
import { UserError } from "../user-error.js";
import { clusterAccess } from "./cluster-access.js";

/** As whom, and where. */
export function clusterAccessOf({ cluster }: Settings): ClusterAccess {
  return clusterAccess(cluster, { environment: process.env, home: homedir() });
}

/** The cluster that the settings name. Whether it answers shows with the first call. `log`: for those who watch. */
export async function openClusterOf(settings: Settings, log?: Logger): Promise<Cluster> {
  const access = clusterAccessOf(settings);
  try {
    return await openCluster({ access, ...(log && { observe: (event) => logCluster(log, event) }) });
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    throw new UserError(`no cluster can be reached: ${error.message}; set cluster.kubeconfig and cluster.context`, {
      cause: error,
    });
  }
}

function logCluster(log: Logger, event: ClusterEvent): void {
  if (event.kind === "watch listener failed") {
    const why = event.error instanceof Error ? event.error.message : String(event.error);
    log.error({ objects: event.objects, why }, "what came from the cluster was not understood; this is a bug");
    return;
  }
  const { objects, state, why } = event;
  const isWell = state === "current" || state === "no such kind" || state === "starting";
  log[isWell ? "debug" : "warn"]({ objects, state, why }, "a watch of the cluster");
}

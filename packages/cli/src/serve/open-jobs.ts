import { type Artifact, type Runner, RunnerError } from "@osbert/bundles";
import { ClusterError, openJobRunner, openPodExec } from "@osbert/kubernetes";
import type { Logger } from "pino";
import type { Settings } from "../settings/table.js";
import { UserError } from "../user-error.js";
import { clusterAccessOf, openClusterOf } from "./open-cluster.js";

/** Jobs of the cluster that the settings name run the actions of bundles. */
export async function openJobs(
  settings: Settings,
  files: (artifact: Artifact) => Promise<string>,
  log: Logger,
): Promise<Runner> {
  const { namespace, helperImage, image, pullSecrets, cpu, role, ...rest } = settings.bundles.jobs;
  if (namespace === undefined || helperImage === undefined)
    throw new UserError(
      "bundles.runner is kubernetes: name the namespace of the jobs in bundles.jobs.namespace, and an image with busybox in bundles.jobs.helperImage",
    );
  const cluster = await openClusterOf(settings, log);
  try {
    const runner = await openJobRunner({
      ...{ ...rest, cluster, files, namespace, helperImage, baseImage: image ?? null, role: role ?? null },
      exec: await openPodExec({ access: clusterAccessOf(settings) }),
      imagePullSecrets: pullSecrets,
      cpu: { limit: cpu },
      observe: ({ kind, job, error }) =>
        log.warn({ job, why: error instanceof Error ? error.message : String(error) }, `a job of a bundle was ${kind}`),
    });
    log.info({ namespace }, "bundles run as Jobs of the cluster");
    return runner;
  } catch (error) {
    cluster.close();
    if (!(error instanceof ClusterError)) throw error;
    throw new RunnerError("no engine", error.message, { cause: error });
  }
}

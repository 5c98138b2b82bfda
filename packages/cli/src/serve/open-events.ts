import { homedir } from "node:os";
import {
  type AppliedChange,
  type Cluster,
  ClusterError,
  type ClusterEvent,
  createWiring,
  type EventServices,
  openCluster,
  openEventServices,
} from "@osbert/kubernetes";
import { flowMetrics, logFlows } from "@osbert/kubernetes/watch";
import type { Registry } from "@osbert/server/metrics";
import type { Logger } from "pino";
import { flowSettings } from "../settings/flow-settings.js";
import type { Settings } from "../settings/table.js";
import { UserError } from "../user-error.js";
import { clusterAccess } from "./cluster-access.js";

/** Services that the applications of a cluster offer, and what reaches the cluster. */
export interface OpenedEvents {
  readonly services: EventServices;
  /** After the broker has stopped. */
  close(): void;
}

/** Who is told of what happens. */
export interface EventsTold {
  readonly log: Logger;
  /** Where figures go, if there are any. */
  readonly registry: Registry | undefined;
}

/**
 * The services of a broker for events. Nothing is asked of the API server before the broker starts, and it may be down then: what was offered
 * before is in the journal.
 */
export async function openEvents(settings: Settings, { log, registry }: EventsTold): Promise<OpenedEvents> {
  const cluster = await openClusterOf(settings, log);
  const { events } = settings;
  const wiring = createWiring({
    cluster,
    settings: flowSettings(events),
    observe: [logFlows(log), ...(registry === undefined ? [] : [flowMetrics(registry)])],
  });
  const services = openEventServices({
    ...{ cluster, wiring, mapping: events.mapping, kinds: events.kinds, rules: { retiredMs: events.retired } },
    secretNamespace: events.secretNamespace ?? events.integrationNamespace,
    observe: (change) => logApplications(log, change),
  });
  return { services, close: () => cluster.close() };
}

async function openClusterOf({ cluster }: Settings, log: Logger): Promise<Cluster> {
  const access = clusterAccess(cluster, { environment: process.env, home: homedir() });
  try {
    return await openCluster({ access, observe: (event) => logCluster(log, event) });
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

function logApplications(log: Logger, { changed, removed, grants, held }: AppliedChange): void {
  const some = (names: readonly string[]) => names.slice(0, mostNames);
  if (changed.length + removed.length + grants > 0)
    log.info({ changed: some(changed), removed: some(removed), grants }, "applications have changed");
  for (const [what, removal] of Object.entries(held)) {
    if (removal === null || removal.confirmed !== null) continue;
    const { count, of, observation } = removal;
    log.warn({ what, count, of, observation }, "a removal is held, because it may be a mistake: osbert events confirm");
  }
}

const mostNames = 20;

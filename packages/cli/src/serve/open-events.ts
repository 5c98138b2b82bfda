import type { Broker } from "@osbert/broker";
import {
  type AppliedChange,
  createWiring,
  type EventServices,
  importFlows,
  kymaRevisions,
  openEventServices,
} from "@osbert/kubernetes";
import { flowMetrics, logFlows } from "@osbert/kubernetes/watch";
import type { Registry } from "@osbert/server/metrics";
import type { Logger } from "pino";
import { flowSettings } from "../settings/flow-settings.js";
import type { Settings } from "../settings/table.js";
import { openClusterOf } from "./open-cluster.js";

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
  /** The broker of these services, once there is one. */
  readonly broker: () => Broker;
}

/**
 * The services of a broker for events. Nothing is asked of the API server before the broker starts, and it may be down then: what was offered
 * before is in the journal.
 */
export async function openEvents(settings: Settings, { log, registry, broker }: EventsTold): Promise<OpenedEvents> {
  const cluster = await openClusterOf(settings, log);
  const { events } = settings;
  const wiring = createWiring({
    cluster,
    settings: flowSettings(events),
    observe: [logFlows(log), ...(registry === undefined ? [] : [flowMetrics(registry)])],
  });
  const services: EventServices = openEventServices({
    ...{ cluster, wiring, mapping: events.mapping, kinds: events.kinds, rules: { retiredMs: events.retired } },
    secretNamespace: events.secretNamespace ?? events.integrationNamespace,
    importFlows: (order) =>
      importFlows({
        ...{ ...order, cluster, broker: broker(), applications: services.applications },
        settings: flowSettings(events),
        revisions: kymaRevisions,
      }),
    observe: (change) => logApplications(log, change),
  });
  return { services, close: () => cluster.close() };
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

import type { Cluster } from "../cluster/cluster.js";
import { ClusterError } from "../cluster/cluster-error.js";
import { isOwn } from "../flows/desired-objects.js";
import { type FlowSettings, kinds } from "../flows/flow-settings.js";
import type { Evidence } from "../flows/next-broker.js";
import { isRecord } from "../flows/observed.js";
import type { FlowObserver } from "../watch/flow-event.js";

export interface UseOfBrokerPorts {
  readonly cluster: Cluster;
  readonly settings: FlowSettings;
  readonly tell: FlowObserver;
}

/** So many Triggers are named. */
const mostNamed = 3;

/**
 * Whether somebody else uses a Broker that no flow needs: asked of the cluster itself, because a copy may lack a Trigger that was made a moment ago.
 * A Broker with Triggers holds others' events. What cannot be found out holds up nothing else that there is to do: the Broker stays, and is asked
 * for again later.
 */
export async function useOfBroker(ports: UseOfBrokerPorts, namespace: string, signal: AbortSignal): Promise<Evidence> {
  try {
    return await askForUse(ports, namespace, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ClusterError)) throw error;
    ports.tell({ kind: "cluster refused", namespace, what: "broker", name: ports.settings.brokerName, error });
    return { kind: "used", why: `it could not be found out whether others use it: ${error.message}` };
  }
}

async function askForUse(
  { cluster, settings }: UseOfBrokerPorts,
  namespace: string,
  signal: AbortSignal,
): Promise<Evidence> {
  const { brokerName, deleteBroker } = settings;
  const seen = await cluster.read(kinds.broker, { namespace, name: brokerName }, { signal });
  if (seen === undefined) return { kind: "gone" };
  if (!isOwn(seen, settings)) return { kind: "used", why: "it is somebody else's by now" };
  const names: string[] = [];
  if (deleteBroker === "whenUnused") {
    for await (const { spec, metadata } of cluster.list(kinds.trigger, { namespace, signal })) {
      if (isRecord(spec) && spec.broker === brokerName) names.push(metadata.name);
      if (names.length > mostNamed) break;
    }
  }
  if (names.length > 0) return { kind: "used", why: usedBy(names) };
  const { uid = "", resourceVersion = "" } = seen.metadata;
  return { kind: "unused", uid, resourceVersion };
}

function usedBy(names: readonly string[]): string {
  const named = names.slice(0, mostNamed).sort().join(", ");
  return `Triggers use it: ${named}${names.length > mostNamed ? " and others" : ""}`;
}

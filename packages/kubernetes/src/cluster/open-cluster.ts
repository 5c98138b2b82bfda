import type { Cluster } from "./cluster.js";
import type { ClusterEvent } from "./cluster-event.js";
import { type ClusterAccess, CredentialReader } from "./credentials.js";
import { HttpCluster } from "./http-cluster.js";
import { Transport } from "./transport.js";
import { usualPace, type WatchPace } from "./watch-pace.js";

export interface OpenClusterOptions {
  readonly access: ClusterAccess;
  /** In whose name fields are written. Default "osbert". */
  readonly fieldManager?: string;
  /** Where watches take another time than usual. */
  readonly pace?: Partial<WatchPace>;
  /** For jitter. Default `Math.random`. */
  readonly random?: () => number;
  readonly observe?: (event: ClusterEvent) => void;
}

/**
 * The edge to an API server. Rejects if the access leads to no server at all, such as a kubeconfig without the context; whether the server answers
 * shows with the first call.
 */
export async function openCluster(options: OpenClusterOptions): Promise<Cluster> {
  const credentials = new CredentialReader(options.access);
  await credentials.check();
  return new HttpCluster({
    transport: new Transport(credentials),
    fieldManager: options.fieldManager ?? "osbert",
    pace: { ...usualPace, ...options.pace },
    random: options.random ?? Math.random,
    observe: (event) => {
      try {
        options.observe?.(event);
      } catch {
        // Whoever looks on does not break what he looks at.
      }
    },
  });
}

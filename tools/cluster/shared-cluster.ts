import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import type { LeftOut } from "../servers.js";
import { type Keeper, startKeeper } from "./cluster.js";
import type { ClusterFacts, ClusterOptions } from "./options.js";

/** What a worker is answered. */
export type SharedClusterAnswer = ClusterFacts | LeftOut | { readonly failed: string };

/** Where the workers of a test run ask for the cluster that they share. */
export interface SharedCluster {
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * The one cluster of a test run, in the process that starts the workers. Nothing is started before the first test asks, and then only what
 * it asks for: a run of other tests pays nothing.
 */
export async function offerSharedCluster(): Promise<SharedCluster> {
  let keeper: Keeper | undefined;
  const answer = async (incoming: IncomingMessage): Promise<SharedClusterAnswer> => {
    keeper ??= startKeeper((line) => console.log(`cluster: ${line}`));
    return keeper.ensure((await json(incoming)) as ClusterOptions);
  };
  const server = createServer((incoming, response) => {
    answer(incoming)
      .catch((error: unknown) => ({ failed: error instanceof Error ? error.message : String(error) }))
      .then((value) => response.end(JSON.stringify(value)))
      .catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.close();
      server.closeAllConnections();
      await keeper?.stop();
    },
  };
}

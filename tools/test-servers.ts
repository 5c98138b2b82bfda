import type { TestProject } from "vitest/node";
import { offerSharedCluster } from "./cluster/shared-cluster.js";
import { type LeftOut, type RunningServer, startMariadb, startPostgres } from "./servers.js";

/**
 * Starts the database servers once for a whole test run. A server that this machine does not have is left out with one line
 * that says so; with OSBERT_TEST_REQUIRE=all that fails the run instead. With OSBERT_TEST_SERVERS=none there are none.
 * A cluster of Kubernetes is only offered: it is started for the first test that asks.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const none: LeftOut = { leftOut: "OSBERT_TEST_SERVERS=none" };
  const isNone = process.env.OSBERT_TEST_SERVERS === "none";
  const [postgres, mariadb] = isNone ? [none, none] : await Promise.all([startPostgres(), startMariadb()]);
  const cluster = isNone ? undefined : await offerSharedCluster();
  const servers = { PostgreSQL: postgres, MariaDB: mariadb };
  const stop = async () => {
    const stops = Object.values(servers).map(async (server) => "leftOut" in server || (await server.stop()));
    await Promise.all([...stops, cluster?.stop()]);
  };
  const lines = Object.entries(servers).flatMap(([name, server]) =>
    "leftOut" in server ? [`left out: ${name} store tests — ${server.leftOut}`] : [],
  );
  if (lines.length > 0 && process.env.OSBERT_TEST_REQUIRE === "all") {
    await stop();
    throw new Error(`OSBERT_TEST_REQUIRE=all, but ${lines.join("; ")}`);
  }
  for (const line of lines) console.log(line);
  project.provide("postgresUrl", urlOf(postgres));
  project.provide("mysqlUrl", urlOf(mariadb));
  project.provide("clusterUrl", cluster?.url ?? null);
  return stop;
}

function urlOf(server: RunningServer | LeftOut): string | null {
  return "leftOut" in server ? null : server.url;
}

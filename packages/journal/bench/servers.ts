import { type LeftOut, type RunningServer, startMariadb, startPostgres } from "../../../tools/servers.js";
import type { StoreName } from "./places.js";

/** The database servers of a run. */
export interface Servers {
  readonly postgresUrl: string | null;
  readonly mysqlUrl: string | null;
  readonly versions: readonly string[];
  /** Why a store cannot take part. */
  readonly leftOut: readonly string[];
  has(store: StoreName): boolean;
  stop(): Promise<void>;
}

/** Starts those that the wanted stores need, on the loopback interface. They end with this process, however it ends. */
export async function startServers(wanted: readonly string[]): Promise<Servers> {
  const [postgres, mariadb] = await Promise.all([
    wanted.includes("PostgreSQL") ? startPostgres() : notWanted,
    wanted.includes("MariaDB") ? startMariadb() : notWanted,
  ]);
  const running = [postgres, mariadb].filter(
    (server): server is RunningServer => server !== undefined && "url" in server,
  );
  const [postgresUrl, mysqlUrl] = [urlOf(postgres), urlOf(mariadb)];
  return {
    postgresUrl,
    mysqlUrl,
    versions: running.map(({ version }) => version),
    leftOut: [...whyOf("PostgreSQL", postgres), ...whyOf("MariaDB", mariadb)],
    has: (store) => store === "SQLite" || (store === "PostgreSQL" ? postgresUrl : mysqlUrl) !== null,
    stop: async () => void (await Promise.all(running.map((server) => server.stop()))),
  };
}

const notWanted = undefined;
type Server = RunningServer | LeftOut | typeof notWanted;

function urlOf(server: Server): string | null {
  return server !== undefined && "url" in server ? server.url : null;
}

function whyOf(name: string, server: Server): readonly string[] {
  return server !== undefined && "leftOut" in server ? [`${name} — ${server.leftOut}`] : [];
}

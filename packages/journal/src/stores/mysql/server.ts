import { unavailable } from "./failure.js";
import { statementBytes } from "./packet.js";
import type { Sessions } from "./sessions.js";

/** What the store must know of the server and its connections. */
export interface Server {
  readonly database: string;
  /** The largest statement that it reads. */
  readonly packetBytes: number;
  /** How much to put into one statement. */
  readonly statementBytes: number;
}

/** Throws a clear sentence if the store cannot work there. */
export async function lookAtServer(sessions: Sessions): Promise<Server> {
  const [row] = await sessions.use((session) =>
    session.rows(`select version() as version, database() as name, @@max_allowed_packet as packet,
      @@character_set_client as client, @@character_set_results as results`),
  );
  const version = String(row?.version);
  if (!knowsSkipLocked(version)) {
    throw unavailable(`the server is ${version}; the store needs MariaDB 10.6 or MySQL 8.0.1, or a newer one`);
  }
  if (row?.name === null) throw new TypeError("the pool's connections have no database selected");
  if (row?.client !== "utf8mb4" || row.results !== "utf8mb4") {
    throw new TypeError(
      `the pool's connections use ${String(row?.client)}; the store needs charset: "utf8mb4", which is the default`,
    );
  }
  const packetBytes = Number(row.packet);
  return {
    database: String(row.name),
    packetBytes,
    statementBytes: statementBytes(packetBytes),
  };
}

/** `for update skip locked`, which claims need. */
function knowsSkipLocked(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = (/\d+\.\d+\.\d+/.exec(version)?.[0] ?? "").split(".").map(Number);
  if (/mariadb/i.test(version)) return major > 10 || (major === 10 && minor >= 6);
  return major > 8 || (major === 8 && (minor > 0 || patch >= 1));
}

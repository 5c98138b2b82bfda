import { spawn } from "node:child_process";
import { startMariadb, startPostgres } from "./servers.js";

/**
 * `tsx tools/with-servers.ts COMMAND …` runs a command with a PostgreSQL and a MariaDB of its own, whose addresses it finds in
 * OSBERT_TEST_POSTGRES_URL and OSBERT_TEST_MYSQL_URL. A server that this machine lacks leaves its variable unset.
 */
const [command, ...args] = process.argv.slice(2);
if (command === undefined) throw new Error("usage: tsx tools/with-servers.ts COMMAND [ARGUMENT …]");

const [postgres, mariadb] = await Promise.all([startPostgres(), startMariadb()]);
const env = { ...process.env };
if ("url" in postgres) env.OSBERT_TEST_POSTGRES_URL = postgres.url;
if ("url" in mariadb) env.OSBERT_TEST_MYSQL_URL = mariadb.url;

process.on("SIGINT", () => {}); // The command gets it too and decides; the servers stay until it has ended.
process.exitCode = await new Promise<number>((resolve, reject) => {
  const child = spawn(command, args, { env, stdio: "inherit" });
  child.once("error", reject);
  child.once("exit", (code) => resolve(code ?? 1));
});
for (const server of [postgres, mariadb]) if ("url" in server) await server.stop();

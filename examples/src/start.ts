import { chmod, mkdir, stat } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createBroker } from "@osbert/broker";
import { serve } from "@osbert/broker/http";
import { sqliteStore } from "@osbert/journal/sqlite";
import { EmbeddedPostgres } from "./postgres-database/embedded-postgres.js";
import { postgresDatabase } from "./postgres-database/postgres-database.js";
import { PretendCloud } from "./slow-cluster/pretend-cloud.js";
import { slowCluster } from "./slow-cluster/slow-cluster.js";
import { sqliteDatabase } from "./sqlite-database.js";

// What `npm start` runs: a broker on loopback, with an embedded store and real services.

const folder = resolve(process.env.OSBERT_DATA ?? ".osbert");
const port = Number(process.env.PORT ?? 8080);
if (!(Number.isInteger(port) && port >= 0 && port < 65_536)) end("PORT must be a number from 0 to 65535");
const [username, password] = (process.env.OSBERT_CREDENTIALS ?? "").split(/:(.*)/s);
if (username && !password) end("OSBERT_CREDENTIALS must look like name:password");
const postgresUrl = process.env.OSBERT_POSTGRES_URL;
if (postgresUrl && !(/^postgres(ql)?:/.test(postgresUrl) && URL.canParse(postgresUrl))) {
  end("OSBERT_POSTGRES_URL must look like postgres://user:password@host:5432/postgres");
}

await mkdir(folder, { recursive: true, mode: 0o700 }).catch((error: Error) => end(error.message));
// Run by root, PostgreSQL runs as another user, who has to come by. What is secret in the folder is closed to others by itself.
if (process.getuid?.() === 0) await chmod(folder, (await stat(folder)).mode | 0o011);

// Nothing of PostgreSQL is started before somebody wants a database: the broker is there at once.
const embedded = postgresUrl ? undefined : EmbeddedPostgres.find(join(folder, "postgres"));
const server = embedded instanceof EmbeddedPostgres ? embedded : undefined;
const postgresAt = postgresUrl ? async () => postgresUrl : server && (() => server.url());

const broker = createBroker({
  services: [
    sqliteDatabase(join(folder, "databases")),
    slowCluster({ cloud: new PretendCloud(join(folder, "cloud")) }),
    ...(postgresAt ? [postgresDatabase(postgresAt)] : []),
  ],
  store: sqliteStore(join(folder, "broker.db")),
});
const credentials = username && password ? { credentials: [{ username, password }] } : {};
const served = await serve(broker, { port, ...credentials }).catch((error: Error & { code?: string }) =>
  end(error.code === "EADDRINUSE" ? `port ${port} is in use; try PORT=${port + 1} npm start` : error.message),
);
// Databases of an earlier start are somebody's: they are brought back without being asked for, beside everything else.
if (server?.isInUse) server.url().catch((error: Error) => process.stderr.write(`PostgreSQL: ${error.message}\n`));

function end(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

const made = served.credential;
const user = made === null ? '"$OSBERT_CREDENTIALS"' : `'${made.username}:${made.password}'`;
const instance = `${served.url}/v2/service_instances/my-database`;
const binding = `${instance}/service_bindings/my-app`;
const ids = "service_id=8f3f1b52-6c0d-4f5e-9a51-3d1a6f0c2b10&plan_id=8f3f1b52-6c0d-4f5e-9a51-3d1a6f0c2b11";
const body = `{"service_id":"8f3f1b52-6c0d-4f5e-9a51-3d1a6f0c2b10","plan_id":"8f3f1b52-6c0d-4f5e-9a51-3d1a6f0c2b11"`;
const curl = `curl -s -u ${user} -H 'X-Broker-API-Version: 2.17' -H 'Content-Type: application/json'`;
const useDatabase = relative(process.cwd(), fileURLToPath(new URL("./use-database.js", import.meta.url)));
const leftOut =
  embedded !== undefined && "leftOut" in embedded ? `\npostgres-database is left out: ${embedded.leftOut}.` : "";
process.stdout.write(`
Osbert answers at ${served.url}, as ${made === null ? `${username}, with the password you gave` : `${made.username}:${made.password}`}
It offers ${[...broker.catalog.services.values()].map(({ offering }) => offering.name).join(", ")}.${leftOut}
Its data is in ${folder}; a second start goes on where this one stops.

In another terminal, in this folder: provision a database, bind to it, and write a note into it with the binding's credentials:

${curl} -X PUT '${instance}' -d '${body},"organization_guid":"o","space_guid":"s"}'

${curl} -X PUT '${binding}' -d '${body}}'

${curl} '${binding}' | node '${useDatabase}' 'a first note'

And to take it down again:

${curl} -X DELETE '${binding}?${ids}'; ${curl} -X DELETE '${instance}?${ids}'

Ctrl-C stops it.
`);

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    process.stdout.write("stopping…\n");
    // The broker first: what it still runs may need its databases.
    served
      .close({ drainMs: 5_000 })
      .then(() => server?.stop())
      .then(
        () => process.exit(0),
        () => process.exit(1),
      );
  });
}

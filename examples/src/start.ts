import { randomBytes } from "node:crypto";
import { chmod, mkdir, stat } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createBroker, type Service } from "@osbert/broker";
import { serve } from "@osbert/broker/http";
import { sqliteStore } from "@osbert/journal/sqlite";
import { bundlesInFolder } from "./bundles-in-folder.js";
import { EmbeddedPostgres } from "./postgres-database/embedded-postgres.js";
import { postgresDatabase } from "./postgres-database/postgres-database.js";
import { samplePlatform } from "./sample-platform.js";
import { PretendCloud } from "./slow-cluster/pretend-cloud.js";
import { slowCluster } from "./slow-cluster/slow-cluster.js";
import { sqliteDatabase } from "./sqlite-database.js";

// What `npm start` runs: a broker on loopback, with an embedded store and real services, and a platform that has it registered.

const folder = resolve(process.env.OSBERT_DATA ?? ".osbert");
const port = Number(process.env.PORT ?? 8080);
if (!(Number.isInteger(port) && port >= 0 && port < 65_536)) end("PORT must be a number from 0 to 65535");
const platformPort = Number(process.env.OSBERT_PLATFORM_PORT ?? (port === 0 ? 0 : port + 1));
if (!(Number.isInteger(platformPort) && platformPort >= 0 && platformPort < 65_536))
  end("OSBERT_PLATFORM_PORT must be a number from 0 to 65535");
const given = process.env.OSBERT_CREDENTIALS;
const [username = "", password = ""] = (given || `osbert:${randomBytes(18).toString("base64url")}`).split(/:(.*)/s);
if (username === "" || password === "") end("OSBERT_CREDENTIALS must look like name:password");
const credential = { username, password };
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

const services: readonly Service[] = [
  sqliteDatabase(join(folder, "databases")),
  slowCluster({ cloud: new PretendCloud(join(folder, "cloud")) }),
  ...(postgresAt ? [postgresDatabase(postgresAt)] : []),
];
const bundlesFolder = fileURLToPath(new URL("../bundles", import.meta.url));
const bundles = await bundlesInFolder({ folder: bundlesFolder, directory: join(folder, "bundles"), services });
const broker = createBroker({
  services: "leftOut" in bundles ? services : bundles,
  store: sqliteStore(join(folder, "broker.db")),
});
const served = await serve(broker, { port, credentials: [credential] }).catch((error: Error & { code?: string }) =>
  end(error.code === "EADDRINUSE" ? `port ${port} is in use; try PORT=${port + 10} npm start` : error.message),
);
const platform = await samplePlatform({ folder, port: platformPort, credential, broker: served }).catch(
  (error: Error & { code?: string }) =>
    end(
      error.code === "EADDRINUSE"
        ? `port ${platformPort} is in use; try OSBERT_PLATFORM_PORT=${platformPort + 10} npm start`
        : error.message,
    ),
);
// Databases of an earlier start are somebody's: they are brought back without being asked for, beside everything else.
if (server?.isInUse) server.url().catch((error: Error) => process.stderr.write(`PostgreSQL: ${error.message}\n`));

function end(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

const user = given ? '"$OSBERT_CREDENTIALS"' : `'${username}:${password}'`;
const instance = `${served.url}/v2/service_instances/my-database`;
const binding = `${instance}/service_bindings/my-app`;
const ids = "service_id=8f3f1b52-6c0d-4f5e-9a51-3d1a6f0c2b10&plan_id=8f3f1b52-6c0d-4f5e-9a51-3d1a6f0c2b11";
const body = `{"service_id":"8f3f1b52-6c0d-4f5e-9a51-3d1a6f0c2b10","plan_id":"8f3f1b52-6c0d-4f5e-9a51-3d1a6f0c2b11"`;
const curl = `curl -s -u ${user} -H 'X-Broker-API-Version: 2.17' -H 'Content-Type: application/json'`;
const ask = `curl -s -u ${user} -H 'Content-Type: application/json'`;
const api = `${platform.url}/api/v1`;
const database = `${api}/spaces/demo/instances/my-database`;
const useDatabase = relative(process.cwd(), fileURLToPath(new URL("./use-database.js", import.meta.url)));
const names = services.map(({ name }) => name).join(", ");
const ofBundles = "leftOut" in bundles ? "" : `, and the bundles in ${relative(process.cwd(), bundlesFolder)}`;
const leftOut = [
  ...(embedded !== undefined && "leftOut" in embedded ? [`postgres-database is left out: ${embedded.leftOut}.`] : []),
  ...("leftOut" in bundles ? [`Bundles are left out: ${bundles.leftOut}.`] : []),
].map((line) => `\n${line}`);
process.stdout.write(`
Osbert answers at ${served.url}, as ${given ? `${username}, with the password you gave` : `${username}:${password}`}
It offers ${names}${ofBundles}.${leftOut.join("")}
Its data is in ${folder}; a second start goes on where this one stops.

A platform that has it registered answers at ${platform.url}, to the same name and password.
Three commands to try in another terminal, in this folder: what can be had, a database that is made and bound, and its journal:

${ask} '${api}/offerings'

${ask} -X PUT '${database}' -d '{"offering":"sqlite-database","plan":"file"}'; ${ask} -X PUT '${database}/bindings/my-app' -d '{}'

${ask} '${database}/journal'

The same with the program, which waits, and tells what became of it:

export OSBERT_PLATFORM_URL=${platform.url} OSBERT_PLATFORM_SPACE=demo OSBERT_PLATFORM_LOGIN=${user}
npx osbert platform show my-database

Or be the platform yourself: provision a database, bind to it, and write a note into it with the binding's credentials:

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
    // The platform first, which asks the broker; then the broker: what it still runs may need its databases.
    platform
      .close()
      .then(() => served.close({ drainMs: 5_000 }))
      .then(() => server?.stop())
      .then(
        () => process.exit(0),
        () => process.exit(1),
      );
  });
}

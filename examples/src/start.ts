import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createBroker } from "@osbert/broker";
import { serve } from "@osbert/broker/http";
import { sqliteStore } from "@osbert/journal/sqlite";
import { sqliteDatabase } from "./sqlite-database.js";

// What `npm start` runs: a broker on loopback, with an embedded store and a real service.

const folder = resolve(process.env.OSBERT_DATA ?? ".osbert");
const port = Number(process.env.PORT ?? 8080);
if (!(Number.isInteger(port) && port >= 0 && port < 65_536)) end("PORT must be a number from 0 to 65535");
const [username, password] = (process.env.OSBERT_CREDENTIALS ?? "").split(/:(.*)/s);
if (username && !password) end("OSBERT_CREDENTIALS must look like name:password");
await mkdir(folder, { recursive: true, mode: 0o700 });

const broker = createBroker({
  services: [sqliteDatabase(join(folder, "databases"))],
  store: sqliteStore(join(folder, "broker.db")),
});
const credentials = username && password ? { credentials: [{ username, password }] } : {};
const served = await serve(broker, { port, ...credentials }).catch((error: Error & { code?: string }) =>
  end(error.code === "EADDRINUSE" ? `port ${port} is in use; try PORT=${port + 1} npm start` : error.message),
);

function end(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

const made = served.credential;
const user = made === null ? '"$OSBERT_CREDENTIALS"' : `'${made.username}:${made.password}'`;
const instance = `${served.url}/v2/service_instances/my-database`;
const ids = "service_id=8f3f1b52-6c0d-4f5e-9a51-3d1a6f0c2b10&plan_id=8f3f1b52-6c0d-4f5e-9a51-3d1a6f0c2b11";
const body = `{"service_id":"8f3f1b52-6c0d-4f5e-9a51-3d1a6f0c2b10","plan_id":"8f3f1b52-6c0d-4f5e-9a51-3d1a6f0c2b11"`;
const curl = `curl -s -u ${user} -H 'X-Broker-API-Version: 2.17' -H 'Content-Type: application/json'`;
process.stdout.write(`
Osbert answers at ${served.url}, as ${made === null ? `${username}, with the password you gave` : `${made.username}:${made.password}`}
Its data is in ${folder}; a second start goes on where this one stops.

Provision a database, bind to it, take it down again:

${curl} -X PUT '${instance}' -d '${body},"organization_guid":"o","space_guid":"s"}'

${curl} -X PUT '${instance}/service_bindings/my-app' -d '${body}}'

${curl} -X DELETE '${instance}/service_bindings/my-app?${ids}'; ${curl} -X DELETE '${instance}?${ids}'

Ctrl-C stops it.
`);

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    process.stdout.write("stopping…\n");
    served.close({ drainMs: 5_000 }).then(
      () => process.exit(0),
      () => process.exit(1),
    );
  });
}

import { randomBytes } from "node:crypto";
import { serve } from "@hono/node-server";
import { createBroker } from "@osbert/broker";
import { fetchHandler } from "@osbert/broker/http";
import { sqliteStore } from "@osbert/journal/sqlite";
import { Hono } from "hono";
import { sqliteDatabase } from "./sqlite-database.js";

const broker = createBroker({ services: [sqliteDatabase("databases")], store: sqliteStore("broker.db") });
const credential = {
  username: "platform",
  password: process.env.BROKER_PASSWORD ?? randomBytes(18).toString("base64url"),
};
const handle = fetchHandler(broker, { credentials: [credential] });

// `mount` takes the prefix off the path before the broker sees it. Anything else that speaks fetch works alike: Bun, Deno, Express
// with an adapter.
const app = new Hono();
app.get("/", (context) => context.json({ hello: "from the application" }));
app.mount("/broker", handle);

await broker.start();
const server = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(process.env.PORT ?? 8080) }, ({ port }) =>
  console.log(`http://127.0.0.1:${port}/broker`, credential),
);

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => server.close(() => void broker.stop()));
}

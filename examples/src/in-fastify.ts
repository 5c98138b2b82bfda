import { randomBytes } from "node:crypto";
import { createBroker } from "@osbert/broker";
import { brokerPlugin } from "@osbert/broker/http";
import { sqliteStore } from "@osbert/journal/sqlite";
import { fastify } from "fastify";
import { sqliteDatabase } from "./sqlite-database.js";

// An application that was there before: its routes, parsers and error handlers stay its own.
const app = fastify();
app.get("/", async () => ({ hello: "from the application" }));

// The broker lives under a prefix, as a plugin with a scope of its own.
const broker = createBroker({ services: [sqliteDatabase("databases")], store: sqliteStore("broker.db") });
const credential = {
  username: "platform",
  password: process.env.BROKER_PASSWORD ?? randomBytes(18).toString("base64url"),
};
await app.register(brokerPlugin, { broker, credentials: [credential], prefix: "/broker" });

// Started before the first request can come, and stopped after the last one was answered.
await broker.start();
app.addHook("onClose", () => broker.stop());

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void app.close());

const url = await app.listen({ host: "127.0.0.1", port: Number(process.env.PORT ?? 8080) });
console.log(`${url}/broker`, credential);

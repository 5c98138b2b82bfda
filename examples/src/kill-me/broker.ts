import { join } from "node:path";
import { createBroker } from "@osbert/broker";
import { serve } from "@osbert/broker/http";
import { sqliteStore } from "@osbert/journal/sqlite";
import { PretendCloud } from "../slow-cluster/pretend-cloud.js";
import { slowCluster } from "../slow-cluster/slow-cluster.js";

// The broker that main.ts kills. Nothing here prepares for that: no signal handler, no saving, no repair at start.

const [folder = "."] = process.argv.slice(2);
const cloud = new PretendCloud(join(folder, "cloud"), { latencyMs: 120 });
const { url, credential } = await serve(
  createBroker({ services: [slowCluster({ cloud, speed: 60 })], store: sqliteStore(join(folder, "broker.db")) }),
  { port: 0 },
);
process.send?.({ url, credential });

// If the script itself is stopped, nothing of it stays.
process.once("disconnect", () => process.exit());

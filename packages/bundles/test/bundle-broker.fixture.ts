import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createBroker } from "@osbert/broker";
import { serve } from "@osbert/broker/http";
import { postgresStore } from "@osbert/journal/postgres";
import { sqliteStore } from "@osbert/journal/sqlite";
import pg from "pg";
import { bundleServices, openBundleSource, openProcessRunner, parseSources } from "../src/index.js";

// A broker of the bundles in a folder, as a process that a test can kill: FOLDER DATA, or FOLDER DATA POSTGRES_URL SCHEMA where several
// share a database. It says where it answers on its first line.
const [bundles = "", data = "", url, schema = ""] = process.argv.slice(2);
const parsed = parseSources({ sources: [{ name: "folder", type: "folder", path: bundles }] });
if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.faults));
const nothing = { list: async () => [], read: async () => null, fetch: async () => undefined };
const ports = {
  readFile: (path: string) => readFile(path, "utf8"),
  environment: () => undefined,
  folder: bundles,
  pushed: nothing,
};
const services = bundleServices({
  sources: await Promise.all(parsed.sources.map((source) => openBundleSource(source, ports))),
  runner: (files) => openProcessRunner({ directory: join(data, "jobs"), files, unsandboxed: true }),
  mirror: join(data, "mirror"),
});
const store =
  url === undefined
    ? sqliteStore(join(data, "broker.db"))
    : postgresStore(new pg.Pool({ connectionString: url }), { schema });
// One operation at a time, where a test asks for that: then what was accepted can be seen before it begins.
const concurrency = Number(process.env.OSBERT_TEST_CONCURRENCY ?? 100);
const broker = createBroker({ services, store, journal: { concurrency } });
const admin = { credentials: [{ username: "ann", password: "the-admin-s3cret" }] };
const served = await serve(broker, { port: 0, credentials: "none", admin });
console.log(served.url);

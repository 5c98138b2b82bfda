// A broker of the bundles of a registry, as a process that a test kills. Run from dist/, as a broker is. Its options are one JSON document; on
// its standard output it says where it answers, and when it reads the registry.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createBroker } from "@osbert/broker";
import { serve } from "@osbert/broker/http";
import { bundleServices, openBundleSource, openProcessRunner, parseSources } from "@osbert/bundles";
import { postgresStore } from "@osbert/journal/postgres";
import { sqliteStore } from "@osbert/journal/sqlite";
import pg from "pg";

const { registry, data, postgres, journal = {}, intervalMs, missing, guard, collection } = JSON.parse(process.argv[2]);
const say = (...words) => process.stdout.write(`${words.join(" ")}\n`);
const parsed = parseSources({ sources: [{ name: "hub", type: "distribution", url: registry, default: "allow" }] });
if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.faults));
const ports = {
  readFile: (path) => readFile(path, "utf8"),
  environment: () => undefined,
  folder: data,
  pushed: { list: async () => [], read: async () => null, fetch: async () => undefined },
};
const opened = await openBundleSource(parsed.sources[0], ports);
const source = {
  ...opened,
  intervalMs,
  rules: { ...opened.rules, missing, guard: { ...opened.rules.guard, ...guard } },
  observe: async (...asked) => {
    say("reading begins");
    const observation = await opened.observe(...asked);
    say("read", observation.completeness, observation.refs.size, observation.error ?? "");
    return observation;
  },
};
const services = bundleServices({
  sources: [source],
  runner: (files) => openProcessRunner({ directory: join(data, "jobs"), files, unsandboxed: true }),
  mirror: join(data, "mirror"),
  collection,
});
const store =
  postgres === undefined
    ? sqliteStore(join(data, "broker.db"))
    : postgresStore(new pg.Pool({ connectionString: postgres.url }), { schema: postgres.schema });
const broker = createBroker({ services, store, journal, stderr: "nothing" });
const { url } = await serve(broker, { port: 0, credentials: "none" }).catch((error) => {
  console.error(error);
  process.exit(1);
});
say("url", url);

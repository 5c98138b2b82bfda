import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createBroker, defineService } from "@osbert/broker";
import { serve } from "@osbert/broker/http";
import { type BundleSource, bundleServices, limitJobs, openProcessRunner, type Source } from "@osbert/bundles";
import { sqliteStore } from "@osbert/journal/sqlite";
import { fastify } from "fastify";
import { openRegistry } from "./open-registry.js";
import { syntheticSource } from "./synthetic-source.js";

// A server to be measured, in a process of its own: `server.js bare FILE`, which answers with the bytes of a file, or `server.js bundles FOLDER
// COUNT`, a broker of so many bundles. It says its port; then every line on its standard input that is a number has bundle 0 changed to that
// version, and is answered with what that took, as JSON; `memory` is answered with what it has. `server.js busy FOLDER` is a broker of a bundle that takes half a second, at most 8 at a time, beside
// a service in code. `server.js registry FOLDER URL` is a broker of all that a registry has; it answers `memory`, too. All end with their standard input.

const [kind = "", place = "", count = "0"] = process.argv.slice(2);
const inCode = defineService({
  ...{ id: "in-code", name: "in-code", description: "A service in code" },
  plans: { small: { id: "in-code-small", description: "A small one" } },
  provision: async () => ({}),
});
const by = { actor: { type: "operator", subject: "bench" } } as const;

if (kind === "bare") {
  const bytes = readFileSync(place);
  const app = fastify();
  app.get("/v2/catalog", (_request, reply) => reply.header("content-type", "application/json").send(bytes));
  console.log(new URL(await app.listen({ port: 0, host: "127.0.0.1" })).port);
} else if (kind === "busy") {
  const services = bundleServices({
    sources: [oneBundle("slow", "sleep 0.5\n")],
    services: [inCode],
    runner: async (files) =>
      limitJobs(await openProcessRunner({ directory: join(place, "jobs"), files, unsandboxed: true }), 8),
    mirror: join(place, "mirror"),
  });
  const broker = createBroker({ services, store: sqliteStore(join(place, "broker.db")) });
  const { url } = await serve(broker, { port: 0, credentials: "none" });
  console.log(new URL(url).port);
} else if (kind === "registry") {
  const services = bundleServices({
    sources: [await openRegistry(count)],
    runner: (files) => openProcessRunner({ directory: join(place, "jobs"), files, unsandboxed: true }),
    mirror: join(place, "mirror"),
  });
  // It is asked for its catalog until it has one, and says each time that it has none.
  const broker = createBroker({ services, store: sqliteStore(join(place, "broker.db")), stderr: "nothing" });
  const { url } = await serve(broker, { port: 0, credentials: "none" });
  console.log(new URL(url).port);
  process.stdin.on("data", () => console.log(JSON.stringify(memory())));
} else {
  const { source, setVersion } = syntheticSource(Number(count));
  let readAt = 0;
  const observed: BundleSource = {
    ...source,
    observe: async (stored, reading) => {
      const observation = await source.observe(stored, reading);
      readAt = performance.now();
      return observation;
    },
  };
  const services = bundleServices({
    sources: [observed],
    runner: (files) => openProcessRunner({ directory: join(place, "jobs"), files, unsandboxed: true }),
    mirror: join(place, "mirror"),
  });
  const broker = createBroker({ services, store: sqliteStore(join(place, "broker.db")) });
  const { url } = await serve(broker, { port: 0, credentials: "none" });
  console.log(new URL(url).port);
  const change = async (version: number) => {
    const etag = etagNow(broker);
    const written = writtenBytes();
    setVersion(version);
    await services.refresh("hub", by);
    while (etagNow(broker) === etag) await new Promise((resolve) => setImmediate(resolve));
    const tookMs = performance.now() - readAt;
    // What is still being written belongs to it.
    await new Promise((resolve) => setTimeout(resolve, 200));
    console.log(JSON.stringify({ tookMs, writtenBytes: writtenBytes() - written, ...memory() }));
  };
  process.stdin.on("data", (chunk) => {
    const asked = String(chunk).trim();
    if (asked === "memory") return console.log(JSON.stringify(memory()));
    change(Number(asked)).catch((error: unknown) => {
      console.error(error);
      process.exit(1);
    });
  });
}
// They answer by now. `osbert serve` does the same then, and says why.
setFlagsFromString("--heap-growing-percent=30");
setFlagsFromString("--expose-gc");
runInNewContext("gc")();
process.stdin.on("end", () => process.exit(0)).resume();

/** A source of one bundle, with what it runs. */
function oneBundle(name: string, script: string): BundleSource {
  const { source } = syntheticSource(1, { name, command: ["sh", "./run.sh"] });
  const fetch: Source["fetch"] = (_repository, _digest, to) => writeFile(join(to, "run.sh"), script);
  return { ...source, source: { ...source.source, fetch } };
}

function etagNow(broker: ReturnType<typeof createBroker>): string | null {
  try {
    return broker.catalog.etag;
  } catch {
    return null;
  }
}

/** All that this process has written, to whatever file. */
function writtenBytes(): number {
  return Number(/^wchar: (\d+)$/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);
}

function memory(): { readonly rssBytes: number; readonly peakBytes: number } {
  const status = readFileSync("/proc/self/status", "utf8");
  const bytes = (name: string) => 1_024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]);
  return { rssBytes: bytes("VmRSS"), peakBytes: bytes("VmHWM") };
}

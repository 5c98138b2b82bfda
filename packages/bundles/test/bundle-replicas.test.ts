import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createBroker } from "@osbert/broker";
import { postgresStore } from "@osbert/journal/postgres";
import pg from "pg";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { bundleServices, openBundleSource, openProcessRunner, parseSources } from "../src/index.js";

const by = { actor: { type: "operator", subject: "ann" } } as const;
const nothingPushed = { list: async () => [], read: async () => null, fetch: async () => undefined };

function description(name: string, version: string): string {
  const lines = ["osbert: 1", `name: ${name}`, `version: ${version}`, "description: A test", "command: [sh, ./run.sh]"];
  return [...lines, "plans:", "  small:", "    description: A small one", ""].join("\n");
}

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "osbert-replicas-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** A broker of its own on the database that both share, and on the folder that both read. */
async function startReplica(schema: string, bundles: string) {
  const parsed = parseSources({ sources: [{ name: "folder", type: "folder", path: bundles }] });
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.faults));
  const ports = {
    ...{ readFile: (path: string) => readFile(path, "utf8"), environment: () => undefined },
    ...{ folder: bundles, pushed: nothingPushed },
  };
  const readings: string[] = [];
  const work = await folder();
  const services = bundleServices({
    sources: await Promise.all(parsed.sources.map((source) => openBundleSource(source, ports))),
    runner: (files) => openProcessRunner({ directory: join(work, "jobs"), files, unsandboxed: true }),
    mirror: join(work, "mirror"),
    observe: (event) => {
      if (event.kind === "source read") readings.push(event.observation.completeness);
    },
  });
  const pool = new pg.Pool({ connectionString: inject("postgresUrl") as string });
  const broker = createBroker({ stderr: "nothing", services, store: postgresStore(pool, { schema }) });
  let isStopped = false;
  const stop = async () => {
    if (isStopped) return;
    isStopped = true;
    await broker.stop({ drainMs: 0 });
    await pool.end();
  };
  onTestFinished(stop);
  await broker.start();
  const offered = () => {
    const { etag, services: known } = broker.catalog;
    const versions = [...known.values()].map(({ offering }) => offering.plans[0]?.maintenance_info?.version);
    return { etag, versions };
  };
  return { services, offered, readings, stop };
}

test("F5-71, F5-72: one of two replicas reads, both offer the same, and the other goes on when it is gone", async () => {
  expect(inject("postgresUrl"), "PostgreSQL is never left out").not.toBeNull();
  const schema = `bundles_${process.pid}_${Date.now()}`;
  const bundles = await folder();
  await mkdir(join(bundles, "notes"));
  await writeFile(join(bundles, "notes", "run.sh"), "exit 0\n");
  await writeFile(join(bundles, "notes", "osbert.yaml"), description("notes", "1.0.0"));
  const one = await startReplica(schema, bundles);
  await vi.waitFor(() => expect(one.offered().versions).toEqual(["1.0.0"]), 20_000);
  const other = await startReplica(schema, bundles);
  await vi.waitFor(() => expect(other.offered()).toEqual(one.offered()), 20_000);
  await writeFile(join(bundles, "notes", "osbert.yaml"), description("notes", "1.1.0"));
  expect(await other.services.refresh("folder", by)).toBeTypeOf("string");
  await vi.waitFor(() => {
    expect(one.offered().versions).toEqual(["1.1.0"]);
    expect(other.offered()).toEqual(one.offered());
  }, 20_000);
  await one.stop();
  await writeFile(join(bundles, "notes", "osbert.yaml"), description("notes", "1.2.0"));
  await other.services.refresh("folder", by);
  await vi.waitFor(() => expect(other.offered().versions).toEqual(["1.2.0"]), 20_000);
  expect(other.readings).toContain("complete");
});

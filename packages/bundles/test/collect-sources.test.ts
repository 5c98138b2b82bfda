import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testBroker } from "@osbert/broker/testing";
import type { Store } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { interposedStore } from "@osbert/journal/testing";
import { expect, onTestFinished, test } from "vitest";
import { ArtifactMirror } from "../src/catalog/artifact-mirror.js";
import type { CollectionOptions } from "../src/index.js";
import type { BundleObserver } from "../src/watch/index.js";
import { bundleFolder, folderServices } from "./folder-services.js";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

const versioned = (name: string, version: string) => `
osbert: 1
name: ${name}
version: ${version}
description: Notes in a file
bindable: true
command: [sh, ./run.sh]
plans:
  small: { description: A small one, free: true }
`;

/** A broker on a clock of its own, whose services are bundles in a folder. */
async function start(collection: CollectionOptions = {}, store?: Store, observe?: BundleObserver) {
  const bundles = await bundleFolder();
  const services = await folderServices(bundles, { collection, ...(observe !== undefined && { observe }) });
  const flow = await testBroker({ services, ...(store !== undefined && { store }) });
  onTestFinished(() => flow.stop());
  const names = async () =>
    ((await flow.request("GET", "/v2/catalog")).body?.services ?? []).map(({ name }: { name: string }) => name);
  const read = async (expected: readonly string[]) => {
    await services.refresh("folder", { actor: { type: "operator", subject: "ann" } });
    await expect.poll(async () => (await names()).sort()).toEqual([...expected].sort());
  };
  const write = async (name: string, version = "1.0.0", script = "") => {
    await mkdir(join(bundles, name), { recursive: true });
    await writeFile(join(bundles, name, "osbert.yaml"), versioned(name, version));
    await writeFile(join(bundles, name, "run.sh"), script);
  };
  const remove = (name: string) => rm(join(bundles, name), { recursive: true });
  const stateOf = (name: string) => {
    for (const [id, record] of services.sources().get("folder")?.specs ?? [])
      if (id.includes(name)) return record.kind === "service" ? record.state.kind : record.kind;
    return "unknown";
  };
  const revisions = async () =>
    (await flow.broker.journal.parts("bundles.source.folder", "revision/", { limit: 100 })).items.length;
  return { flow, services, write, remove, read, stateOf, revisions };
}

test("F5-53, F5-55: what has retired goes an hour later, unless it has an instance, and then when that is gone", async () => {
  const { flow, write, remove, read, stateOf } = await start();
  for (const name of ["used", "unused", "stays"]) await write(name);
  await read(["used", "unused", "stays"]);
  expect((await flow.provision("i1", { service: "used", acceptsIncomplete: false })).status).toBe(201);
  const { services } = (await flow.request("GET", "/v2/catalog")).body;
  const used = services.find(({ name }: { name: string }) => name === "used");
  await remove("used");
  await remove("unused");
  await read(["stays"]);
  await flow.advance(hourMs / 2);
  expect([stateOf("unused"), stateOf("used")]).toEqual(["retired", "retired"]);
  await flow.advance(hourMs);
  await expect.poll(() => stateOf("unused")).toBe("deleted");
  expect([stateOf("used"), stateOf("stays")]).toEqual(["retired", "active"]);
  const query = new URLSearchParams({ service_id: used.id, plan_id: used.plans[0].id });
  expect((await flow.request("DELETE", `/v2/service_instances/i1?${query}`)).status).toBe(200);
  await flow.advance(hourMs);
  await expect.poll(() => stateOf("used")).toBe("deleted");
});

test("F5-53, F5-56: a revision stays while an instance is at it, and goes when it was upgraded", async () => {
  const { flow, write, read, revisions, services } = await start();
  await write("notes");
  await read(["notes"]);
  expect((await flow.provision("i1", { acceptsIncomplete: false })).status).toBe(201);
  const versionIs = async (version: string) =>
    expect
      .poll(async () => (await flow.request("GET", "/v2/catalog")).body.services[0].plans[0].maintenance_info.version)
      .toBe(version);
  for (const version of ["1.1.0", "1.2.0"]) {
    await write("notes", version);
    await read(["notes"]);
    await versionIs(version);
  }
  expect(await revisions()).toBe(3);
  await flow.advance(2 * hourMs);
  await expect.poll(revisions).toBe(2);
  const kept = [...(await services.collectable()).values()].flatMap((each) => each.kept);
  expect(kept).toEqual([
    { what: expect.stringContaining("revision/"), why: expect.stringContaining("something refers") },
  ]);
  const upgrade = { acceptsIncomplete: false, with: { maintenance_info: { version: "1.2.0" } } };
  expect((await flow.update("i1", upgrade)).status).toBe(200);
  await flow.advance(hourMs);
  await expect.poll(revisions).toBe(1);
});

test("F5-54: an instance that cannot be read keeps its own spec and revisions, and no other", async () => {
  let damaged = false;
  const store = interposedStore(memoryStore(), async ({ method }, go) => {
    const answer = await go();
    if (!damaged || method !== "find") return answer;
    const records = answer as readonly { readonly key: string }[];
    return records.map((record) => (record.key.endsWith("/i1") ? { ...record, state: "damaged" } : record));
  });
  const { flow, services, write, remove, read, stateOf, revisions } = await start(
    { retiredMs: 0, intervalMs: 50 },
    store,
  );
  for (const name of ["gone", "other", "kept"]) await write(name);
  await read(["gone", "other", "kept"]);
  for (const [instance, service] of [
    ["i1", "gone"],
    ["i2", "kept"],
  ] as const)
    expect((await flow.provision(instance, { service, acceptsIncomplete: false })).status).toBe(201);
  damaged = true;
  await remove("gone");
  await remove("other");
  await read(["kept"]);
  await flow.advance(1_000);
  await expect.poll(() => stateOf("other")).toBe("deleted");
  expect(stateOf("gone")).toBe("retired");
  await expect.poll(revisions).toBe(2);
  const { kept } = (await services.collectable()).get("folder") ?? {};
  expect(kept?.map(({ what }) => what)).toEqual([expect.stringContaining("gone")]);
});

test("F5-53: a dry run says what would go, and removes nothing", async () => {
  const told: string[] = [];
  const observe: BundleObserver = (event) => {
    if (event.kind === "source collected" && event.dryRun) told.push(...event.collection.deleted);
  };
  const { flow, write, remove, read, stateOf, services } = await start({ dryRun: true }, undefined, observe);
  await write("notes");
  await write("stays");
  await read(["notes", "stays"]);
  await remove("notes");
  await read(["stays"]);
  await flow.advance(2 * hourMs);
  await expect.poll(() => told.some((spec) => spec.includes("notes"))).toBe(true);
  expect(stateOf("notes")).toBe("retired");
  expect([...(await services.collectable()).values()].flatMap(({ deleted }) => deleted)).toHaveLength(1);
});

test("F5-53: files that nothing refers to go after 24 hours, and not if something refers to them again", async () => {
  const directory = await mkdtemp(join(tmpdir(), "osbert-mirror-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const mirror = new ArtifactMirror(directory);
  for (const name of ["sha256-a", "sha256-b", "sha256-c", ".half-fetched"]) await mkdir(join(directory, name));
  const sweep = (digests: readonly string[], now: number) => mirror.sweep(new Set(digests), now, dayMs);
  expect(await sweep(["sha256:a"], 0)).toEqual([]);
  expect(await sweep(["sha256:a", "sha256:b"], dayMs - 1)).toEqual([]);
  expect((await sweep(["sha256:a"], dayMs)).toSorted()).toEqual([".half-fetched", "sha256-c"]);
  expect(await sweep(["sha256:a"], 2 * dayMs - 1)).toEqual([]);
  expect(await sweep(["sha256:a"], 2 * dayMs)).toEqual(["sha256-b"]);
  expect(await readdir(directory)).toEqual(["sha256-a"]);
});

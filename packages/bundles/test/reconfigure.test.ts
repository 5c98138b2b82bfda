import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testBroker } from "@osbert/broker/testing";
import { systemClock } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { byItself, sourceResource } from "../src/catalog/source-resource.js";
import {
  type BundleServices,
  bundleServices,
  openBundleSource,
  openProcessRunner,
  PushedStore,
  parseSources,
} from "../src/index.js";
import { bundleFolder } from "./folder-services.js";

const yaml = (name: string) => `
osbert: 1
name: ${name}
version: 1.0.0
description: Notes in a file
command: [sh, ./run.sh]
plans:
  small: { description: A small one, free: true }
`;
const patience = { timeout: 20_000 };

async function folderWith(...names: readonly string[]): Promise<string> {
  const path = await bundleFolder();
  for (const name of names) {
    await mkdir(join(path, name));
    await writeFile(join(path, name, "osbert.yaml"), yaml(name));
    await writeFile(join(path, name, "run.sh"), "exit 0\n");
  }
  return path;
}

/** A broker whose sources can be changed while it runs. */
async function start(settings: readonly object[], store = memoryStore(), whileOpening?: readonly object[]) {
  const work = await bundleFolder();
  const pushed = new PushedStore();
  const ports = {
    readFile: (path: string) => readFile(path, "utf8"),
    environment: () => undefined,
    folder: work,
    pushed,
  };
  const open = async (sources: readonly object[]) => {
    const parsed = parseSources({ sources: sources.map((source) => ({ interval: "10d", ...source })) });
    if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.faults));
    return Promise.all(parsed.sources.map((config) => openBundleSource(config, ports)));
  };
  let readings = 0;
  let early: Promise<void> | undefined;
  const services: BundleServices = bundleServices({
    sources: await open(settings),
    async runner(files) {
      if (whileOpening !== undefined) early = services.configure(await open(whileOpening));
      return openProcessRunner({ directory: join(work, "jobs"), files, unsandboxed: true });
    },
    mirror: join(work, "mirror"),
    pushed,
    observe: [
      ({ kind }) => {
        if (kind === "source read") readings += 1;
      },
    ],
  });
  const flow = await testBroker({ services, store, journal: { clock: systemClock }, stderr: "nothing" });
  onTestFinished(() => flow.stop());
  await early;
  const names = async () =>
    ((await flow.request("GET", "/v2/catalog")).body?.services ?? []).map(({ name }: { name: string }) => name).sort();
  const ids = async () => (await flow.request("GET", "/v2/catalog")).body.services.map(({ id }: { id: string }) => id);
  const set = async (next: readonly object[]) => services.configure(await open(next));
  const source = (name: string) => services.sources().get(name);
  return { flow, services, names, ids, set, open, source, readings: () => readings };
}

const folder = (name: string, path: string) => ({ name, type: "folder", path });

test("F5-23: a source is added and taken out while the broker runs, and comes back with its ids", async () => {
  const [one, two] = [await folderWith("notes"), await folderWith("lists")];
  const { flow, names, ids, set, source } = await start([folder("one", one)]);
  await expect.poll(names, patience).toEqual(["notes"]);
  await set([folder("one", one), folder("two", two)]);
  await expect.poll(names, patience).toEqual(["lists", "notes"]);
  const before = await ids();
  expect((await flow.provision("i1", { service: "lists", acceptsIncomplete: false })).status).toBe(201);
  await set([folder("one", one)]);
  expect(source("two")?.data).toMatchObject({ mode: "draining", drainedBy: null });
  // It stays in the catalog for its grace, and instances go on.
  expect((await flow.request("GET", "/v2/catalog")).status).toBe(200);
  await set([folder("one", one), folder("two", two)]);
  expect(source("two")?.data.mode).toBe("active");
  // Taken out once more at once, it drains once more.
  await set([folder("one", one)]);
  expect(source("two")?.data.mode).toBe("draining");
  await set([folder("one", one), folder("two", two)]);
  await expect.poll(names, patience).toEqual(["lists", "notes"]);
  expect(await ids()).toEqual(before);
});

test("F5-59, F5-72: what a source offered stays its own when the settings lack it, whoever else has the id", async () => {
  const id = "6b8d5a3e-5f1e-4a38-9c53-2d9f3f1f0a01";
  const [one, two] = [await folderWith("notes"), await folderWith("lists")];
  for (const [path, name] of [[one, "notes"] as const, [two, "lists"] as const])
    await writeFile(join(path, name, "osbert.yaml"), `id: ${id}${yaml(name)}`);
  const [first, second] = [
    { ...folder("one", one), priority: 10 },
    { ...folder("two", two), priority: 5 },
  ];
  const store = memoryStore();
  const { names, set, source } = await start([first, second], store);
  await expect.poll(() => source("two")?.data.firstComplete ?? null, patience).not.toBeNull();
  await expect.poll(names, patience).toEqual(["notes"]);
  await set([second]);
  expect(source("one")?.data.mode).toBe("draining");
  expect(await names()).toEqual(["notes"]);
  // A process that has never had it makes the same catalog.
  const other = await start([second], store);
  expect(await other.names()).toEqual(["notes"]);
  // It is ranked by its settings again, wherever they are.
  await set([{ ...first, priority: 1 }, second]);
  await expect.poll(names, patience).toEqual(["lists"]);
  await expect.poll(other.names, patience).toEqual(["lists"]);
});

test("a source that an earlier version has kept without its rank is ranked by its settings, which are written down", async () => {
  const one = await folderWith("notes");
  const store = memoryStore();
  const settings = [{ ...folder("one", one), priority: 10, failover: true }];
  const { flow, names, source } = await start(settings, store);
  await expect.poll(names, patience).toEqual(["notes"]);
  const rank = source("one")?.data.rank;
  expect(rank).toEqual({ priority: 10, failover: true });
  const forget = sourceResource.decide((resource) => {
    if (resource === undefined) throw new Error("no source");
    const { rank: _, ...data } = resource.data;
    return { result: null, change: { data } };
  });
  await flow.broker.journal.transact("bundles.source.one", forget, { by: byItself });
  await flow.stop();
  const again = await start(settings, store);
  expect(again.source("one")?.data.rank).toEqual(rank);
});

test("F5-26: a source whose place has changed is the same one, and what has the same digest is not read again", async () => {
  const one = await folderWith("notes");
  const { names, ids, set, source, readings } = await start([folder("one", one)]);
  await expect.poll(names, patience).toEqual(["notes"]);
  const [before, current] = [await ids(), source("one")?.specs.get("notes")];
  const moved = await bundleFolder();
  await cp(one, moved, { recursive: true });
  const count = readings();
  await set([folder("one", moved)]);
  await expect.poll(readings, patience).toBeGreaterThan(count);
  expect(await ids()).toEqual(before);
  expect(source("one")?.specs.get("notes")).toEqual(current);
});

test("F5-28, F5-21: a source is disabled, and its filter narrowed, while the broker runs", async () => {
  const one = await folderWith("lists", "maps", "more", "notes", "tags", "urls");
  const { names, set, source } = await start([folder("one", one)]);
  const all = ["lists", "maps", "more", "notes", "tags", "urls"];
  await expect.poll(names, patience).toEqual(all);
  await set([{ ...folder("one", one), enabled: false }]);
  expect(source("one")?.data.mode).toBe("disabled");
  expect(await names()).toEqual(all);
  await set([{ ...folder("one", one), deny: ["maps"] }]);
  const state = () => {
    const record = source("one")?.specs.get("maps");
    return record?.kind === "service" ? record.state : undefined;
  };
  await expect.poll(state, patience).toMatchObject({ kind: "missing", reason: "config" });
  // All but one is more than the guard lets go.
  await set([{ ...folder("one", one), default: "deny", allow: ["notes"] }]);
  await expect.poll(() => source("one")?.data.guard, patience).toMatchObject({ count: 4, of: 5 });
  expect(await names()).toEqual(all);
  await set([folder("one", one)]);
  await expect.poll(state, patience).toMatchObject({ kind: "active" });
});

test("F5-24, F5-25: a source gets another name with the ids it had, and two of one name are refused", async () => {
  const one = await folderWith("notes");
  const { names, ids, set, open, services, source } = await start([folder("one", one)]);
  await expect.poll(names, patience).toEqual(["notes"]);
  const before = await ids();
  await set([{ ...folder("other", one), previousNames: ["one"] }]);
  expect(source("other")?.data).toMatchObject({ identityName: "one", mode: "active" });
  expect(await ids()).toEqual(before);
  const twice = [...(await open([folder("a", one)])), ...(await open([folder("a", one)]))];
  await expect(services.configure(twice)).rejects.toThrow("two sources of bundles have the same name");
  expect([...services.sources().keys()]).toEqual(["other"]);
});

test("what is configured as before costs no commit, and a store that does not answer leaves what there was", async () => {
  const [one, two] = [await folderWith("notes"), await folderWith("lists")];
  const store = memoryStore();
  const { flow, names, set, source } = await start([folder("one", one)], store);
  await expect.poll(names, patience).toEqual(["notes"]);
  const seq = async () => (await flow.broker.journal.read("bundles.source.one"))?.seq;
  const before = await seq();
  const generation = source("one")?.data.generation;
  await set([folder("one", one)]);
  expect(await seq()).toBe(before);
  const { journal } = flow.broker;
  const transact = journal.transact.bind(journal);
  let broken = true;
  journal.transact = ((key: string, ...rest: [never, never]) =>
    broken && key === "bundles.source.two" ? Promise.reject(new Error("no store")) : transact(key, ...rest)) as never;
  await expect(set([{ ...folder("one", one), priority: 1 }, folder("two", two)])).rejects.toThrow("no store");
  // Both as they were: the first, which was written, is written back.
  expect([source("one")?.data.generation, source("two")]).toEqual([generation, undefined]);
  broken = false;
  await set([{ ...folder("one", one), priority: 1 }, folder("two", two)]);
  await expect.poll(names, patience).toEqual(["lists", "notes"]);
});

test("F5-23: sources that are configured while the broker starts are not lost to those that it was started with", async () => {
  const [one, two] = [await folderWith("notes"), await folderWith("lists")];
  const { names, source } = await start([folder("one", one)], memoryStore(), [folder("two", two)]);
  await expect.poll(names, patience).toContain("lists");
  expect(source("two")?.data.mode).toBe("active");
});

test("F5-17, 59: a source that is opened has the settings for the guard and for taking over", async () => {
  const folder = await bundleFolder();
  const ports = { readFile: async () => "", environment: () => undefined, folder, pushed: new PushedStore() };
  const source = { name: "one", type: "folder", path: ".", failover: true, autoConfirm: "always" };
  const parsed = parseSources({ sources: [source, { name: "two", type: "folder", path: "." }] });
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.faults));
  expect(await Promise.all(parsed.sources.map((config) => openBundleSource(config, ports)))).toMatchObject([
    { failover: true, rules: { guard: { least: 3, autoConfirm: "always" } } },
    { failover: false, rules: { guard: { least: 3, autoConfirm: "unless all" } } },
  ]);
});

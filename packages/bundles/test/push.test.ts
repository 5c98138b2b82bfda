import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createHandler } from "@osbert/broker/http";
import { testBroker } from "@osbert/broker/testing";
import { type Journal, systemClock } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { bundleDescriptions, bundleRoutes } from "../src/admin/index.js";
import { buildBundle, ociArchive, openBundleFolder, readOciArchive } from "../src/author/index.js";
import {
  bundleServices,
  openBundleSource,
  openProcessRunner,
  PushedStore,
  parseSources,
  pushLimits,
} from "../src/index.js";
import { digestOf } from "../src/sources/digest-of.js";
import { bundleFolder } from "./folder-services.js";

const yaml = (name: string, version = "1.0.0") => `
osbert: 1
name: ${name}
version: ${version}
description: Notes in a file
bindable: true
command: [sh, ./run.sh]
plans:
  small: { description: A small one, free: true }
`;
const apb =
  "version: 1.0\nname: hello-apb\ndescription: Hello\nbindable: false\nasync: optional\nplans:\n  - name: default\n    description: The one\n    free: true\n    parameters: []\n";
const authorization = `Basic ${Buffer.from("ann:the-admin-s3cret").toString("base64")}`;
const because = { reason: "because" };
const patience = { timeout: 20_000 };

/** A replica of a broker that bundles can be pushed to. Each has its own disk. */
async function replica(store = memoryStore(), { runsRuntime2 = false } = {}) {
  const work = await bundleFolder();
  const pushed = new PushedStore();
  const parsed = parseSources({ sources: [{ type: "push", interval: "10d" }] });
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.faults));
  const ports = { readFile: async () => "", environment: () => undefined, folder: work, pushed };
  const services = bundleServices({
    sources: await Promise.all(parsed.sources.map((config) => openBundleSource(config, ports, { runsRuntime2 }))),
    runner: (files) => openProcessRunner({ directory: join(work, "jobs"), files, unsandboxed: true }),
    mirror: join(work, "mirror"),
    pushed,
  });
  const admin = { credentials: [{ username: "ann", password: "the-admin-s3cret" }] };
  const flow = await testBroker({
    ...{ services, store, journal: { clock: systemClock }, stderr: "nothing" },
    wire: (broker, options) => createHandler(broker, { ...options, admin }),
  });
  onTestFinished(() => flow.stop());
  const ask = async (method: string, path: string, body?: object) => {
    const answer = await flow.request(method, `/admin/v1/bundles${path}`, {
      headers: { authorization, ...(body !== undefined && { "content-type": "application/json" }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const named = bundleRoutes.find(
      ([verb, route]) =>
        verb === method && new RegExp(`^${route.replaceAll(/:\w+/g, "[^/]+")}$`).test(`/admin/v1/bundles${path}`),
    );
    if (answer.status === 200 && named !== undefined) bundleDescriptions[named[2]].answer(answer.body);
    return answer;
  };
  const names = async () =>
    ((await flow.request("GET", "/v2/catalog")).body?.services ?? []).map(({ name }: { name: string }) => name).sort();
  /** What asks for the end of an instance, as long as its service is offered. */
  const remover = async (instance: string, service: string) => {
    const { services } = (await flow.request("GET", "/v2/catalog")).body;
    const { id, plans } = services.find(({ name }: { name: string }) => name === service);
    return `/v2/service_instances/${instance}?service_id=${id}&plan_id=${plans[0].id}`;
  };
  const refresh = () => ask("POST", "/sources/push/refresh", because);
  const state = async (spec: string) =>
    (await ask("GET", `/sources/push/specs/${encodeURIComponent(spec)}`)).body.state as string;
  return { flow, ask, names, remover, refresh, state, pushed };
}

/** The body of a push. */
async function bundle(name: string, { version = "1.0.0", script = "exit 0\n", tag = "latest" } = {}) {
  const folder = await bundleFolder();
  await writeFile(join(folder, "osbert.yaml"), yaml(name, version));
  await writeFile(join(folder, "run.sh"), script);
  const built = await buildBundle(await openBundleFolder(folder));
  const [manifest, ...blobs] = [built.manifest, ...built.blobs].map(({ bytes }) => bytes.toString("base64"));
  return { built, body: { ...because, tag, artifact: { manifest, blobs } } };
}

test("F5-64: what is pushed to one replica is offered by all, and runs where no registry is", async () => {
  const store = memoryStore();
  const [one, other] = [await replica(store), await replica(store)];
  expect((await one.flow.request("GET", "/v2/catalog")).status).toBe(200);
  // More than one part of the journal holds.
  const script = `# ${"0123456789abcdef".repeat(100_000)}\necho '{"state":{"made":"yes"}}'\n`;
  const { body, built } = await bundle("notes", { script });
  const answer = await one.ask("POST", "/pushed", body);
  expect([answer.status, answer.body]).toMatchObject([
    200,
    { source: "push", spec: "notes", repository: "notes", tag: "latest", digest: built.manifest.digest, by: "ann" },
  ]);
  for (const { names } of [one, other]) await expect.poll(names, patience).toEqual(["notes"]);
  expect((await other.ask("GET", "/pushed")).body.items).toEqual([answer.body]);
  expect((await other.flow.provision("i1", { acceptsIncomplete: false })).status).toBe(201);
  const remove = await one.remover("i1", "notes");
  // The same again is the same; another tag is another service; new content is a new revision.
  expect((await other.ask("POST", "/pushed", body)).status).toBe(200);
  expect((await one.ask("POST", "/pushed", (await bundle("notes", { tag: "next" })).body)).body.spec).toBe(
    "notes:next",
  );
  await expect.poll(async () => (await other.names()).length, patience).toBe(2);
  expect((await one.ask("POST", "/pushed", (await bundle("notes", { version: "2.0.0" })).body)).status).toBe(200);
  const version = async () => (await other.ask("GET", "/sources/push/specs/notes")).body.version;
  await expect.poll(version, patience).toBe("2.0.0");
  expect((await one.flow.request("DELETE", remove)).status).toBe(200);
});

test("F5-65: what has instances is removed only with force, retires then, and its instances go on", async () => {
  const store = memoryStore();
  const [one, other] = [await replica(store), await replica(store)];
  for (const name of ["notes", "lists"]) await one.ask("POST", "/pushed", (await bundle(name)).body);
  await expect.poll(one.names, patience).toEqual(["lists", "notes"]);
  expect((await one.flow.provision("i1", { service: "notes", acceptsIncomplete: false })).status).toBe(201);
  const remove = await one.remover("i1", "notes");
  for (const path of ["/pushed/notes/remove", "/pushed/remove"]) {
    const refused = await one.ask("POST", path, because);
    expect([refused.status, refused.body.description]).toEqual([409, expect.stringContaining("instances of notes")]);
  }
  expect((await one.ask("POST", "/pushed/nobody/remove", because)).status).toBe(404);
  expect((await one.ask("POST", "/pushed/lists/remove", because)).body).toEqual({ removed: 1 });
  expect((await one.ask("POST", "/pushed/remove", { ...because, force: true })).body).toEqual({ removed: 1 });
  for (const { names } of [one, other]) await expect.poll(names, patience).toEqual([]);
  expect((await one.ask("GET", "/pushed")).body.items).toEqual([]);
  // A reading does not bring it back, and another machine still has what its instance was made of.
  await one.refresh();
  expect(await other.state("notes")).toBe("retired");
  await other.pushed.sweep(new Set());
  expect((await other.flow.request("DELETE", remove)).status).toBe(200);
  // Pushed again it has its ids again.
  expect((await one.ask("POST", "/pushed", (await bundle("notes")).body)).status).toBe(200);
  await expect.poll(other.names, patience).toEqual(["notes"]);
});

test("F5-64: what is pushed for a time goes with it, and nothing else ever goes missing", async () => {
  const { ask, names, refresh, state } = await replica();
  await ask("POST", "/pushed", (await bundle("stays")).body);
  const { body } = await ask("POST", "/pushed", { ...(await bundle("goes")).body, ttl_seconds: 3 });
  expect(Date.parse(body.expires_at) - Date.parse(body.pushed_at)).toBe(3_000);
  await expect.poll(() => state("goes"), patience).toBe("active");
  await expect.poll(async () => [await refresh(), await names()][1], patience).toEqual(["stays"]);
  expect([await state("goes"), await state("stays")]).toEqual(["retired", "active"]);
  for (let run = 0; run < 5; run++) await refresh();
  expect(await state("stays")).toBe("active");
});

test("F5-64: a broker that was killed between taking back the tag and telling the catalog does it with the next reading", async () => {
  const { ask, names, refresh, pushed } = await replica();
  await ask("POST", "/pushed", (await bundle("notes")).body);
  await expect.poll(names, patience).toEqual(["notes"]);
  await pushed.remove([{ repository: "notes", tag: "latest" }], { actor: { type: "system", subject: "test" } });
  await refresh();
  await expect.poll(names, patience).toEqual([]);
});

test("a push that was killed halfway is not seen, and its bytes are swept away when they are of no use", async () => {
  const { flow, pushed } = await replica();
  const { built } = await bundle("notes");
  const content = {
    kind: "artifact",
    manifest: built.manifest.bytes,
    blobs: built.blobs.map(({ bytes }) => bytes),
  } as const;
  const by = { actor: { type: "system", subject: "test" } } as const;
  const parts = async () =>
    (await flow.broker.journal.parts("bundles.pushed", "", { limit: 100 })).items.map(({ id }) => id);
  const { journal } = flow.broker;
  const storeOn = (changed: Partial<Journal>) => {
    const store = new PushedStore();
    store.open({
      ...{ now: () => journal.now(), read: journal.read.bind(journal) },
      ...{ parts: journal.parts.bind(journal), transact: journal.transact.bind(journal), ...changed },
    } as Journal);
    return store;
  };
  const anHourLater = storeOn({ now: () => journal.now() + 3_600_001 });
  let commits = 0;
  const broken = storeOn({
    transact: (...given) => (commits++ < 2 ? journal.transact(...given) : Promise.reject(new Error("killed"))),
  });
  const ref = { repository: "notes", tag: "latest" };
  await expect(broken.add(content, ref, null, by)).rejects.toThrow("killed");
  expect(await pushed.list()).toEqual([]);
  expect(await pushed.read("notes", built.manifest.digest)).toBeNull();
  await pushed.sweep(new Set());
  expect(await parts()).toHaveLength(2);
  await anHourLater.sweep(new Set());
  expect(await parts()).toEqual([]);
  // Whole, it stays as long as a tag, or a revision that an instance may be of, stands for it.
  await pushed.add(content, ref, null, by);
  await anHourLater.sweep(new Set());
  await pushed.remove([ref], by);
  await anHourLater.sweep(new Set([built.manifest.digest]));
  expect(await pushed.read("notes", built.manifest.digest)).toMatchObject({ kind: "bundle" });
  await pushed.sweep(new Set());
  expect(await pushed.read("notes", built.manifest.digest)).toMatchObject({ kind: "bundle" });
  await anHourLater.sweep(new Set());
  expect(await parts()).toEqual([]);
});

test("a tag that is pushed again while its end is swept away stays", async () => {
  const { flow, pushed } = await replica();
  const { built } = await bundle("notes");
  const blobs = built.blobs.map(({ bytes }) => bytes);
  const content = { kind: "artifact", manifest: built.manifest.bytes, blobs } as const;
  const by = { actor: { type: "system", subject: "test" } } as const;
  const ref = { repository: "notes", tag: "latest" };
  await pushed.add(content, ref, 1, by);
  const { journal } = flow.broker;
  const sweeper = new PushedStore();
  let isRenewed = false;
  sweeper.open({
    ...{ now: () => journal.now() + 2, parts: journal.parts.bind(journal) },
    async transact(...given: Parameters<Journal["transact"]>) {
      if (!isRenewed) await pushed.add(content, ref, null, by);
      isRenewed = true;
      return journal.transact(...given);
    },
  } as Journal);
  await sweeper.sweep(new Set());
  expect(isRenewed).toBe(true);
  expect(await pushed.list()).toMatchObject([{ ref, until: null }]);
});

test("a classic bundle is pushed by the digest of its image and the text of its description", async () => {
  const { ask, names } = await replica();
  const digest = `sha256:${"0a".repeat(32)}`;
  const image = { reference: `registry.example/team/hello@${digest}`, spec: apb };
  const { status, body } = await ask("POST", "/pushed", { ...because, image });
  expect([status, body.spec]).toEqual([200, "hello-apb"]);
  await expect.poll(async () => (await names()).length, patience).toBe(1);
  const refused = async (changed: object) =>
    (await ask("POST", "/pushed", { ...because, image: { ...image, ...changed } })).body.description;
  expect(await refused({ reference: "registry.example/team/hello:latest" })).toContain("a tag may be another image");
  expect(await refused({ reference: `https://a:b@registry.example/x@${digest}` })).toContain("without a scheme");
  expect(await refused({ spec: "name: [" })).toContain("cannot be used");
  expect(await refused({ runtime: 2 })).toMatch(/must be 1: .* write a Secret of Kubernetes, and run only there$/);
  expect(await refused({ runtime: 3 })).toContain("must be 1");
});

test("F5-36: a classic bundle of runtime 2 can be pushed where it can be run", async () => {
  const { ask, names } = await replica(memoryStore(), { runsRuntime2: true });
  const image = { reference: `registry.example/team/hello@sha256:${"0b".repeat(32)}`, spec: apb, runtime: 2 };
  const { status, body } = await ask("POST", "/pushed", { ...because, image });
  expect([status, body.spec]).toEqual([200, "hello-apb"]);
  await expect.poll(async () => (await names()).length, patience).toBe(1);
  const wrong = await ask("POST", "/pushed", { ...because, image: { ...image, runtime: 3 } });
  expect([wrong.status, wrong.body.description]).toEqual([400, expect.stringContaining("must be 1, or 2")]);
});

test("what could not be used from a registry is refused when it is pushed, with its place, and nothing is kept", async () => {
  const { ask, flow } = await replica();
  const { body, built } = await bundle("notes");
  const push = async (changed: object) => {
    const answer = await ask("POST", "/pushed", { ...body, ...changed });
    return [answer.status, answer.body.description];
  };
  const [config, files] = body.artifact.blobs;
  const { manifest } = body.artifact;
  expect(await push({ artifact: { manifest, blobs: [config] } })).toEqual([400, expect.stringContaining("not there")]);
  const torn = Buffer.from(files ?? "", "base64")
    .subarray(10)
    .toString("base64");
  expect(await push({ artifact: { manifest, blobs: [config, torn] } })).toEqual([
    400,
    expect.stringContaining("not there"),
  ]);
  expect(await push({ artifact: { manifest: "e30=", blobs: [] } })).toEqual([
    400,
    expect.stringContaining("no manifest"),
  ]);
  expect(await push({ artifact: { manifest: "§", blobs: [] } })).toEqual([400, expect.stringContaining("base64")]);
  expect(await push({ artifact: undefined })).toEqual([400, expect.stringContaining("either artifact or image")]);
  expect(await push({ tag: "a/b" })).toEqual([400, expect.stringContaining("tag must be")]);
  expect(await push({ repository: "../up" })).toEqual([400, expect.stringContaining("repository must be")]);
  expect(await push({ ttl_seconds: -1 })).toEqual([400, expect.stringContaining("ttl_seconds")]);
  expect(await push({ reason: "" })).toEqual([400, expect.stringContaining("reason")]);
  // Made by hand: a description with a fault, and a link that leads out.
  const wrong = Buffer.from(yaml("notes").replace("description: Notes in a file\n", ""));
  const changed = builtOf(built, wrong);
  expect(await push({ artifact: changed })).toEqual([
    400,
    expect.stringMatching(/^the bundle cannot be used: (line \d+: )?description /),
  ]);
  const folder = await bundleFolder();
  await mkdir(join(folder, "in"));
  await writeFile(join(folder, "osbert.yaml"), yaml("notes"));
  await symlink("/etc/passwd", join(folder, "in", "out"));
  const out = await buildBundle({ ...(await openedAnyway(folder)), folder });
  const artifact = {
    manifest: out.manifest.bytes.toString("base64"),
    blobs: out.blobs.map(({ bytes }) => bytes.toString("base64")),
  };
  expect(await push({ artifact })).toEqual([400, expect.stringContaining("leads out of its folder")]);
  const large = Buffer.alloc(pushLimits.bytes + 1).toString("base64");
  expect(await push({ artifact: { manifest, blobs: [config, large] } })).toEqual([
    413,
    expect.stringContaining("use a registry"),
  ]);
  expect((await flow.broker.journal.parts("bundles.pushed", "", { limit: 10 })).items).toEqual([]);
  expect((await ask("GET", "/pushed")).body.items).toEqual([]);
});

test("an archive of osbert bundle build is read back as it was, and another file is refused with a word", async () => {
  const { built } = await bundle("notes");
  const archive = ociArchive(built);
  expect(await readOciArchive("a.tar", archive)).toEqual({
    manifest: built.manifest.bytes,
    blobs: built.blobs.map(({ bytes }) => bytes),
  });
  for (const bytes of [Buffer.from("no archive"), Buffer.alloc(0), archive.subarray(0, 2_000)])
    await expect(readOciArchive("a.tar", bytes)).rejects.toThrow("a.tar is not an archive of one bundle");
});

test("without a source of type push nothing can be pushed, and there is at most one", async () => {
  const two = parseSources({ sources: [{ type: "push" }, { type: "push", name: "other" }] });
  expect(two).toMatchObject({ kind: "invalid", faults: [{ path: "sources[1].type" }] });
  const named = parseSources({ sources: [{ type: "folder", name: "push", path: "x" }] });
  expect(named).toMatchObject({ kind: "invalid", faults: [{ path: "sources[0].name" }] });
  const listed = parseSources({ sources: [{ type: "push", default: "allow" }] });
  expect(listed).toMatchObject({ kind: "invalid", faults: [{ path: "sources[0].default" }] });
});

/** The same bundle with another description. */
function builtOf(built: Awaited<ReturnType<typeof buildBundle>>, config: Buffer) {
  const manifest = JSON.parse(built.manifest.bytes.toString("utf8"));
  manifest.config = { ...manifest.config, digest: digestOf(config), size: config.length };
  return {
    manifest: Buffer.from(JSON.stringify(manifest)).toString("base64"),
    blobs: [config, ...built.blobs.slice(1).map(({ bytes }) => bytes)].map((bytes) => bytes.toString("base64")),
  };
}

/** Without the look that the author's side takes at links. */
async function openedAnyway(folder: string) {
  const other = await bundleFolder();
  await writeFile(join(other, "osbert.yaml"), yaml("notes"));
  await writeFile(join(other, "run.sh"), "");
  const { bytes, spec, artifact } = await openBundleFolder(other);
  return { bytes, spec, artifact, folder };
}

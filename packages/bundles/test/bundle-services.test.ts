import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testBroker } from "@osbert/broker/testing";
import type { Store } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { parseBundle } from "../src/formats/parse-bundle.js";
import {
  type BundleSource,
  bundleServices,
  openBundleSource,
  openProcessRunner,
  parseSources,
  SourceError,
} from "../src/index.js";
import { judgeBundle } from "../src/observe/judge-bundle.js";

const osbertYaml = `
osbert: 1
name: notes
version: 1.0.0
description: Notes in a file
bindable: true
command: [sh, ./run.sh]
plans:
  small:
    description: A small one
    free: true
`;
const runSh = `
case "$1" in
provision) echo '{"progress":"making"}'; echo '{"state":{"made":"yes"}}'; echo '{"dashboard":"http://127.0.0.1/d"}';;
bind) cat "$OSBERT_INPUT" >&2; echo '{"credentials":{"password":"s3cret-of-the-binding"}}';;
update) exit 64;;
*) ;;
esac
`;

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "osbert-bundles-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

const by = { actor: { type: "operator", subject: "ann" } } as const;

interface Options {
  readonly store?: Store;
  readonly bundles?: string;
  readonly work?: string;
  readonly change?: (source: BundleSource) => BundleSource;
  readonly cascade?: boolean;
}

/** A broker whose services are bundles in a folder. */
async function start(options: Options = {}) {
  const bundles = options.bundles ?? (await folder());
  const work = options.work ?? (await folder());
  const parsed = parseSources({ sources: [{ name: "folder", type: "folder", path: bundles, interval: "1h" }] });
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.faults));
  const [config] = parsed.sources;
  if (config === undefined) throw new Error("no source");
  const ports = { readFile: (path: string) => readFile(path, "utf8"), environment: () => undefined, folder: bundles };
  const opened = await openBundleSource(config, { ...ports, pushed: nothingPushed });
  const rules = {
    ...opened.rules,
    missing: { runs: 1, ms: 0 },
    guard: { ...opened.rules.guard, least: 100, share: 1 },
  };
  const services = bundleServices({
    sources: [(options.change ?? ((source) => source))({ ...opened, rules })],
    runner: (files) => openProcessRunner({ directory: join(work, "jobs"), files, unsandboxed: true }),
    mirror: join(work, "mirror"),
  });
  const flow = await testBroker({ services, store: options.store ?? memoryStore(), cascade: options.cascade ?? false });
  onTestFinished(() => flow.stop());
  const refresh = () => services.refresh("folder", by);
  return { flow, services, bundles, work, refresh };
}

const nothingPushed = {
  list: async () => [],
  read: async () => null,
  fetch: async () => undefined,
};

async function write(bundles: string, name: string, yaml: string, script = runSh): Promise<void> {
  await mkdir(join(bundles, name), { recursive: true });
  await writeFile(join(bundles, name, "osbert.yaml"), yaml);
  await writeFile(join(bundles, name, "run.sh"), script);
}

type Flow = Awaited<ReturnType<typeof testBroker>>;

async function catalog(
  flow: Flow,
): Promise<{ status: number; names: string[]; versions: string[]; etag: string | undefined }> {
  const { status, body, headers } = await flow.request("GET", "/v2/catalog");
  const services: { name: string; plans: { maintenance_info: { version: string } }[] }[] = body?.services ?? [];
  return {
    status,
    names: services.map(({ name }) => name),
    versions: services.map(({ plans }) => plans[0]?.maintenance_info.version ?? ""),
    etag: headers.etag,
  };
}

test("a broker starts, and offers the others, where the store has lost what one bundle is; that is read again", async () => {
  const store = memoryStore();
  const bundles = await folder();
  for (const name of ["notes", "other"]) await write(bundles, name, osbertYaml.replace("name: notes", `name: ${name}`));
  const first = await start({ store, bundles });
  await expect.poll(async () => (await catalog(first.flow)).names.toSorted()).toEqual(["notes", "other"]);
  const { journal } = first.flow.broker;
  const key = "bundles.source.folder";
  const { items } = await journal.parts(key, "revision/", { limit: 10 });
  const lost = items.map(({ id }) => id).find((id) => id.includes("notes")) ?? "";
  await journal.transact(key, () => ({ result: null, change: { parts: { [lost]: null } } }), { by });
  await first.flow.stop();
  let letRead: () => void = () => undefined;
  const mayRead = new Promise<void>((settle) => {
    letRead = settle;
  });
  const change = (source: BundleSource): BundleSource => ({
    ...source,
    observe: async (...reading) => {
      await mayRead;
      return source.observe(...reading);
    },
  });
  const second = await start({ store, bundles, change });
  expect((await catalog(second.flow)).names).toEqual(["other"]);
  expect((await second.flow.provision("i1", { service: "other", acceptsIncomplete: false })).status).toBe(201);
  const known = second.services.sources().get("folder")?.specs.get("notes");
  letRead();
  await expect.poll(async () => (await catalog(second.flow)).names.toSorted()).toEqual(["notes", "other"]);
  expect(second.services.sources().get("folder")?.specs.get("notes")).toEqual(known);
  expect((await second.flow.provision("i2", { service: "notes", acceptsIncomplete: false })).status).toBe(201);
});

test("a bundle in a folder is offered, provisioned, bound, unbound and deprovisioned", async () => {
  const { flow, bundles, refresh } = await start();
  expect((await catalog(flow)).status).toBe(503);
  await write(bundles, "notes", osbertYaml);
  await refresh();
  await expect.poll(() => catalog(flow)).toMatchObject({ status: 200, names: ["notes"], versions: ["1.0.0"] });
  const sync = { acceptsIncomplete: false };
  const made = await flow.provision("i1", sync);
  expect([made.status, made.body]).toEqual([201, { dashboard_url: "http://127.0.0.1/d" }]);
  const bound = await flow.bind("i1", "b1", sync);
  expect([bound.status, bound.body]).toEqual([201, { credentials: { password: "s3cret-of-the-binding" } }]);
  const refused = await flow.update("i1", { ...sync, parameters: { size: 1 } });
  expect([refused.status, refused.body]).toMatchObject([
    400,
    { description: "the bundle refused it without a reason" },
  ]);
  expect((await flow.unbind("i1", "b1", sync)).status).toBe(200);
  expect((await flow.deprovision("i1", sync)).status).toBe(200);
});

test("F5-29, F5-30: instances stay on their revision until they are upgraded", async () => {
  const { flow, bundles, refresh } = await start();
  const script = (version: string) =>
    `case "$1" in bind) echo '{"credentials":{"madeBy":"${version}","state":'"$(grep -o '"made":"[0-9]"' "$OSBERT_INPUT" | tail -c 3 | head -c 1)"'}}';; provision|update) echo '{"state":{"made":"${version}"}}';; esac`;
  await write(bundles, "notes", osbertYaml, script("1"));
  await refresh();
  await expect.poll(() => catalog(flow)).toMatchObject({ versions: ["1.0.0"] });
  const sync = { acceptsIncomplete: false };
  expect((await flow.provision("i1", sync)).status).toBe(201);
  await write(bundles, "notes", osbertYaml.replace("1.0.0", "2.0.0"), script("2"));
  await refresh();
  await expect.poll(() => catalog(flow)).toMatchObject({ versions: ["2.0.0"] });
  expect((await flow.bind("i1", "b1", sync)).body.credentials).toMatchObject({ madeBy: "1" });
  const old = await flow.provision("i2", { ...sync, with: { maintenance_info: { version: "1.0.0" } } });
  expect([old.status, old.body.error]).toEqual([422, "MaintenanceInfoConflict"]);
  const upgraded = await flow.update("i1", { ...sync, with: { maintenance_info: { version: "2.0.0" } } });
  expect(upgraded.status).toBe(200);
  expect((await flow.bind("i1", "b2", sync)).body.credentials).toMatchObject({ madeBy: "2" });
});

test("F5-3, F5-34, F5-47: what was removed is not offered, and its instances go on, also after a restart without the source", async () => {
  const store = memoryStore();
  const { flow, bundles, work, refresh } = await start({ store });
  await write(bundles, "notes", osbertYaml);
  await write(bundles, "other", osbertYaml.replace("name: notes", "name: other"));
  await refresh();
  await expect.poll(() => catalog(flow)).toMatchObject({ names: expect.arrayContaining(["notes", "other"]) });
  const sync = { acceptsIncomplete: false, service: "notes" };
  const { body } = await flow.request("GET", "/v2/catalog");
  const notes = body.services.find(({ name }: { name: string }) => name === "notes");
  expect((await flow.provision("i1", sync)).status).toBe(201);
  await rm(join(bundles, "notes"), { recursive: true });
  await refresh();
  await expect.poll(() => catalog(flow)).toMatchObject({ names: ["other"] });
  const ids = { service_id: notes.id, plan_id: notes.plans[0].id };
  const asked = { body: { ...ids, organization_guid: "o", space_guid: "s" } };
  const again = await flow.request("PUT", "/v2/service_instances/i2", asked);
  expect([again.status, again.body.description]).toEqual([400, expect.stringContaining("not offered any more")]);
  expect((await flow.request("PUT", "/v2/service_instances/i1/service_bindings/b1", { body: ids })).status).toBe(201);
  await flow.stop();

  const away = () => Promise.reject(new SourceError("unreachable", "folder"));
  const next = await start({ store, bundles, work, change: (source) => ({ ...source, observe: away }) });
  expect(await catalog(next.flow)).toMatchObject({ status: 200, names: ["other"] });
  const query = new URLSearchParams(ids);
  const unbound = await next.flow.request("DELETE", `/v2/service_instances/i1/service_bindings/b1?${query}`);
  expect(unbound.status).toBe(200);
  expect((await next.flow.request("DELETE", `/v2/service_instances/i1?${query}`)).status).toBe(200);
});

test("F5-40: an instance changes only to plans that its own leads to", async () => {
  const { flow, bundles, refresh } = await start();
  const plans = `
plans:
  small:
    description: A small one
    updatesTo: [large]
  large:
    description: A large one
    updatesTo: [huge]
  huge:
    description: A huge one
`;
  const script = 'case "$1" in update) echo \'{"state":{"updated":"yes"}}\';; esac';
  await write(bundles, "notes", osbertYaml.replace(/\nplans:.*$/s, plans), script);
  await refresh();
  await expect.poll(() => catalog(flow)).toMatchObject({ names: ["notes"] });
  const sync = { acceptsIncomplete: false };
  expect((await flow.provision("i1", { ...sync, plan: "small" })).status).toBe(201);
  expect((await flow.update("i1", { ...sync, plan: "large" })).status).toBe(200);
  const back = await flow.update("i1", { ...sync, plan: "small" });
  expect([back.status, back.body.description]).toEqual([400, expect.stringContaining("do not change to plan small")]);
  expect((await flow.update("i1", { ...sync, plan: "large", parameters: {} })).status).toBe(200);
});

test("a deprovision that takes the bindings along runs the unbind of each", async () => {
  const { flow, bundles, work, refresh } = await start({ cascade: true });
  const witness = join(work, "witness");
  await write(
    bundles,
    "notes",
    osbertYaml,
    `echo "$1" >>'${witness}'; [ "$1" = bind ] && echo '{"credentials":{}}'; exit 0`,
  );
  await refresh();
  await expect.poll(() => catalog(flow)).toMatchObject({ names: ["notes"] });
  const sync = { acceptsIncomplete: false };
  expect((await flow.provision("i1", sync)).status).toBe(201);
  for (const binding of ["b1", "b2", "b3"]) expect((await flow.bind("i1", binding, sync)).status).toBe(201);
  expect((await flow.deprovision("i1", sync)).status).toBe(200);
  const ran = (await readFile(witness, "utf8")).trim().split("\n");
  expect(ran).toEqual(["provision", "bind", "bind", "bind", "unbind", "unbind", "unbind", "deprovision"]);
});

test("F5-36: a classic bundle in a folder is not offered, with the reason: it has no image to run in", async () => {
  const { flow, bundles, refresh } = await start();
  const apb =
    "version: 1.0\nname: classic-apb\ndescription: A classic one\nbindable: false\nasync: optional\nplans:\n  - name: default\n    description: The only one\n    free: true\n    parameters: []\n";
  await mkdir(join(bundles, "classic"));
  await writeFile(join(bundles, "classic", "apb.yml"), apb);
  await write(bundles, "notes", osbertYaml, "exit 0");
  await refresh();
  await expect.poll(() => catalog(flow)).toMatchObject({ names: ["notes"] });
  const digest = `sha256:${"0".repeat(64)}` as const;
  const read = { kind: "bundle", format: "apb", text: apb, runtime: null } as const;
  const judged = judgeBundle({ ...read, artifact: { kind: "files", repository: "x", digest } }, digest, {
    ...{ parse: parseBundle, parserVersion: 1 },
  });
  const message = expect.stringContaining("runs in its own image, which a folder does not have");
  expect(judged).toMatchObject({ kind: "invalid", problems: [{ message }] });
});

test("F5-36: a classic bundle of runtime 2 is refused, unless what runs bundles can run it", () => {
  const digest = `sha256:${"2".repeat(64)}` as const;
  const text = "version: 1.0\nname: two-apb\ndescription: d\nplans: [{ name: p, description: d }]\n";
  const read = {
    kind: "bundle",
    format: "apb",
    text,
    runtime: 2,
    artifact: { kind: "image", image: "x/y", digest },
  } as const;
  const judge = { parse: parseBundle, parserVersion: 1 };
  const why = expect.stringContaining("run only there");
  expect(judgeBundle(read, digest, judge)).toMatchObject({ kind: "unsupported", why });
  expect(judgeBundle(read, digest, { ...judge, runsRuntime2: true })).toMatchObject({ kind: "read" });
});

test("what no runner here can run fails with a word, and what it left can be deleted", async () => {
  const { flow, bundles, refresh } = await start();
  // Without a command it is for an image.
  await write(bundles, "notes", osbertYaml.replace(/^command: .*\n/m, ""), "exit 0");
  await refresh();
  await expect.poll(() => catalog(flow)).toMatchObject({ names: ["notes"] });
  const sync = { acceptsIncomplete: false };
  const made = await flow.provision("i1", sync);
  expect([made.status, made.body.description]).toEqual([500, expect.stringContaining("cannot be run")]);
  expect((await flow.deprovision("i1", sync)).status).toBe(200);
});

test("F5-41: an instance of a plan that was renamed is upgraded", async () => {
  const { flow, bundles, refresh } = await start();
  await write(bundles, "notes", osbertYaml, "exit 0");
  await refresh();
  await expect.poll(() => catalog(flow)).toMatchObject({ versions: ["1.0.0"] });
  const sync = { acceptsIncomplete: false };
  expect((await flow.provision("i1", sync)).status).toBe(201);
  const renamed = osbertYaml.replace("1.0.0", "2.0.0").replace("small:", "tiny:");
  await write(bundles, "notes", `${renamed}    previousNames: [small]\n`, "exit 0");
  await refresh();
  await expect.poll(() => catalog(flow)).toMatchObject({ versions: ["2.0.0"] });
  const upgraded = await flow.update("i1", { ...sync, with: { maintenance_info: { version: "2.0.0" } } });
  expect([upgraded.status, upgraded.body]).toEqual([200, {}]);
});

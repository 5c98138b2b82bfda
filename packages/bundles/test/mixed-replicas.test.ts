import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testBroker } from "@osbert/broker/testing";
import { systemClock } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { type BundleServicesOptions, type BundleSource, openProcessRunner } from "../src/index.js";
import { bundleFolder, folderServices, writeBundle } from "./folder-services.js";

const description = "osbert: 1\nname: notes\nversion: 1.0.0\ndescription: A test\ncommand: [sh, ./run.sh]\n";
const plans = "plans:\n  small:\n    description: A small one\n";

test("F5-23: a replica that lacks a source does not drain what another one has", async () => {
  const store = memoryStore();
  const bundles = await bundleFolder();
  await mkdir(join(bundles, "notes"));
  await writeFile(join(bundles, "notes", "run.sh"), "exit 0\n");
  await writeFile(join(bundles, "notes", "osbert.yaml"), description + plans);
  const start = async (options: Partial<BundleServicesOptions> = {}) => {
    const services = await folderServices(bundles, options);
    const flow = await testBroker({ services, store, journal: { clock: systemClock }, stderr: "nothing" });
    onTestFinished(() => flow.stop());
    const names = async () => {
      const { body } = await flow.request("GET", "/v2/catalog");
      return body.services?.map(({ name }: { name: string }) => name);
    };
    const modes = () => [...services.sources().values()].map(({ data }) => data.mode);
    return { names, modes };
  };
  const one = await start();
  await expect.poll(one.names, { timeout: 10_000 }).toEqual(["notes"]);
  const lacking = await start({ sources: [] });
  await expect.poll(() => [one.modes(), lacking.modes()], { timeout: 10_000 }).toEqual([["active"], ["active"]]);
  await expect.poll(one.names, { timeout: 10_000 }).toEqual(["notes"]);
  await expect.poll(lacking.names, { timeout: 10_000 }).toEqual(["notes"]);
});

test("sources that one replica has and another lacks are read soon, whoever gets the operations that follow them", async () => {
  const store = memoryStore();
  const bundles = await bundleFolder();
  await writeBundle(bundles, "notes", description + plans, "exit 0\n");
  const configured: BundleSource[] = [];
  const start = async (sources: readonly BundleSource[]) => {
    const keep = (source: BundleSource) => {
      configured.push(source);
      return source;
    };
    const services = await folderServices(bundles, { change: keep, sources });
    const flow = await testBroker({ services, store, journal: { clock: systemClock }, stderr: "nothing" });
    onTestFinished(() => flow.stop());
    return services;
  };
  await start([]);
  const numbers = Array.from({ length: 10 }, (_, number) => number);
  // While one that has them starts, nobody runs but one that lacks them.
  const having = await start(
    numbers.flatMap((number) => configured.slice(0, 1).map((one) => ({ ...one, name: `s${number}` }))),
  );
  const read = () => [...having.sources().values()].filter(({ data }) => data.health.lastRunAt !== null).length;
  // Whoever lacks a source puts it off for half a minute.
  await expect.poll(read, { timeout: 25_000 }).toBe(10);
}, 60_000);

test("a provision that a replica takes over which lacks its source yet waits for one that has it", async () => {
  const store = memoryStore();
  const bundles = await bundleFolder();
  const machine = await bundleFolder();
  const isReady = join(machine, "ready");
  await writeBundle(bundles, "notes", description + plans, `while [ ! -e ${isReady} ]; do sleep 0.1; done\n`);
  const configured: BundleSource[] = [];
  /** On one machine: they find each other's jobs. */
  const start = async (options: Partial<BundleServicesOptions> = {}) => {
    const services = await folderServices(bundles, {
      change: (source) => {
        configured.push(source);
        return source;
      },
      runner: (files) => openProcessRunner({ directory: join(machine, "jobs"), files, unsandboxed: true }),
      mirror: join(machine, "mirror"),
      ...options,
    });
    const flow = await testBroker({ services, store, journal: { clock: systemClock }, stderr: "nothing" });
    onTestFinished(() => flow.stop());
    return { services, flow };
  };
  const patiently = { timeout: 40_000 };
  const lacking = await start({ sources: [] });
  const having = await start({ sources: [] });
  await having.services.configure(configured.slice(0, 1));
  const catalog = async () => (await having.flow.request("GET", "/v2/catalog")).body.services ?? [];
  await expect.poll(catalog, patiently).toMatchObject([{ name: "notes" }]);
  const [{ id, plans: offered }] = await catalog();
  const body = { service_id: id, plan_id: offered[0].id, organization_guid: "o", space_guid: "s" };
  await having.flow.request("PUT", "/v2/service_instances/i1?accepts_incomplete=true", { body });
  const operation = async () => (await lacking.flow.broker.journal.read("/i1"))?.open[0];
  const hasStarted = async () => (await operation())?.steps.some(([name]) => name === "start 1") ?? false;
  await expect.poll(hasStarted, patiently).toBe(true);
  const attempts = (await operation())?.attempts ?? 0;
  await having.flow.stop();
  await expect.poll(async () => (await operation())?.attempts, patiently).toBeGreaterThan(attempts);
  expect((await lacking.flow.lastOperation("i1")).body).toMatchObject({ state: "in progress" });
  await writeFile(isReady, "");
  await lacking.services.configure(configured.slice(0, 1));
  const hurry = { result: null, change: { hurry: [(await operation())?.id ?? ""] } };
  await lacking.flow.broker.journal.transact("/i1", () => hurry, {
    by: { actor: { type: "system", subject: "test" } },
  });
  const state = async () => (await lacking.flow.lastOperation("i1")).body.state;
  await expect.poll(state, patiently).toBe("succeeded");
}, 120_000);

test("F5-58: a replica that has one of two sources with one id does not take its content for that of the other", async () => {
  const store = memoryStore();
  const id = "6b8d5a3e-5f1e-4a38-9c53-2d9f3f1f0a01";
  const start = async (name: string) => {
    const bundles = await bundleFolder();
    await writeBundle(bundles, name, `id: ${id}\n${description.replace("notes", name)}${plans}`, "exit 0\n");
    const change = (source: BundleSource) => ({ ...source, name, priority: name === "other" ? 1 : 0 });
    const services = await folderServices(bundles, { change });
    const flow = await testBroker({ services, store, journal: { clock: systemClock }, stderr: "nothing" });
    onTestFinished(() => flow.stop());
    const offered = async () => services.services?.map((service) => [service.name, service.revision]);
    return { services, offered };
  };
  const first = await start("notes");
  await expect.poll(first.offered, { timeout: 10_000 }).toMatchObject([["notes", expect.any(String)]]);
  // Begins when the first has asked what sources there are.
  const other = await start("other");
  await expect.poll(other.offered, { timeout: 40_000 }).toMatchObject([["other", expect.any(String)]]);
  const revision = (await other.offered())?.[0]?.[1] ?? "";
  const { services } = first;
  expect(await services.resolve(id, revision)).toMatchObject({ name: "other" });
  expect(await services.judge?.accepted(id, revision, Date.now())).toBeNull();
  // By then it offers what the other one does.
  expect(await first.offered()).toEqual(await other.offered());
  const unknown = `sha256:${"0".repeat(64)}`;
  await expect(services.resolve(id, unknown)).rejects.toThrow("no source has revision");
  expect(await services.judge?.accepted(id, unknown, Date.now())).toMatchObject({ kind: "refused" });
}, 60_000);

test("F5-34: a replica that has not mirrored a bundle fetches it again; what the source has lost it finds in a shared folder alone", async () => {
  const store = memoryStore();
  const [bundles, shared] = [await bundleFolder(), join(await bundleFolder(), "mirror")];
  await writeBundle(bundles, "notes", description + plans, "exit 0\n");
  const sync = { acceptsIncomplete: false };
  const replica = async (options: Partial<BundleServicesOptions> = {}) => {
    const services = await folderServices(bundles, options);
    const flow = await testBroker({ services, store, journal: { clock: systemClock }, stderr: "nothing" });
    onTestFinished(() => flow.stop());
    await expect.poll(async () => (await flow.request("GET", "/v2/catalog")).status, { timeout: 10_000 }).toBe(200);
    return flow;
  };
  const first = await replica({ mirror: shared });
  const [service] = (await first.request("GET", "/v2/catalog")).body.services;
  // By its ids: the catalog may have lost it by then.
  const ids = new URLSearchParams({ service_id: service.id, plan_id: service.plans[0].id });
  for (const instance of ["i1", "i2"]) expect((await first.provision(instance, sync)).status).toBe(201);
  await first.stop();
  const alone = await replica();
  expect((await alone.deprovision("i1", sync)).status).toBe(200);
  await alone.stop();
  await rm(join(bundles, "notes"), { recursive: true });
  const lacking = await replica();
  const gone = await lacking.request("DELETE", `/v2/service_instances/i2?${ids}`);
  expect([gone.status, gone.body.description]).toEqual([500, expect.stringContaining("artifact gone")]);
  await lacking.stop();
  const sharing = await replica({ mirror: shared });
  expect((await sharing.request("DELETE", `/v2/service_instances/i2?${ids}`)).status).toBe(200);
});

import { type TestBroker, testBroker } from "@osbert/broker/testing";
import type { JsonObject } from "@osbert/protocol";
import { expect, onTestFinished, test } from "vitest";
import { type BundleServices, bundleServices, openBundleSource, PushedStore, parseSources } from "../src/index.js";
import type { Job, Runner } from "../src/runners/runner.js";
import { bundleFolder, folderServices, writeBundle } from "./folder-services.js";

const by = { actor: { type: "operator", subject: "ann" } } as const;

const classic = `
version: 1.0
name: bucket
description: A bucket
bindable: true
async: optional
plans:
  - name: dev
    description: One
    parameters:
      - { name: region, type: string, required: true }
      - { name: size, type: int, default: 1, updatable: true }
    bind_parameters:
      - { name: role, type: string }
`;
const own = `
osbert: 1
name: bucket
description: A bucket
command: [sh, ./run.sh]
plans:
  dev: { description: One }
`;

/** All jobs end at once, and what they were started with is kept. */
function keepingRunner(started: Job[], exitCode = 0): Runner {
  const isKnown = (id: string) => started.some((job) => job.id === id);
  return {
    name: "keeping",
    place: "here",
    start: async (job) => void (isKnown(job.id) || started.push(job)),
    look: async (id) => (isKnown(id) ? { kind: "ended", exitCode, cause: "exit" } : { kind: "unknown" }),
    jobs: async () => [],
    output: async (_, from) => ({ lines: [], next: from }),
    log: async () => "",
    stop: async () => undefined,
    forget: async () => undefined,
  };
}

/** Services of a source `folder`, and what puts the bundle there once their broker is open. */
interface ServicesToBe {
  readonly services: BundleServices;
  readonly write: () => Promise<unknown>;
}

/** Pushed, because classic bundles are images. */
async function classicServices(runner: Runner): Promise<ServicesToBe> {
  const pushed = new PushedStore();
  const parsed = parseSources({ sources: [{ name: "folder", type: "push", interval: "10d" }] });
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.faults));
  const folder = await bundleFolder();
  const ports = { readFile: async () => "", environment: () => undefined, folder, pushed };
  const sources = await Promise.all(parsed.sources.map((config) => openBundleSource(config, ports)));
  const services = bundleServices({ sources, runner: async () => runner, mirror: folder, pushed });
  const image = { kind: "image", image: "registry.example/bucket", digest: `sha256:${"0".repeat(64)}` } as const;
  const ref = { repository: "bucket", tag: "latest" };
  return { services, write: () => pushed.add({ ...image, runtime: 1, text: classic }, ref, null, by) };
}

async function ownServices(runner: Runner): Promise<ServicesToBe> {
  const bundles = await bundleFolder();
  const services = await folderServices(bundles, { runner: async () => runner });
  return { services, write: () => writeBundle(bundles, "bucket", own, "exit 0\n") };
}

/** A broker that offers the one bundle of a source. */
async function offering({ services, write }: ServicesToBe): Promise<TestBroker> {
  const flow = await testBroker({ services });
  onTestFinished(() => flow.stop());
  await write();
  await services.refresh("folder", by);
  await expect.poll(async () => (await flow.request("GET", "/v2/catalog")).body.services).toHaveLength(1);
  return flow;
}

/** The inputs of all actions in the life of an instance, by action. */
async function lifeOf(servicesOn: (runner: Runner) => Promise<ServicesToBe>): Promise<Record<string, JsonObject>> {
  const started: Job[] = [];
  const flow = await offering(await servicesOn(keepingRunner(started)));
  const sync = { acceptsIncomplete: false };
  const statuses = [
    await flow.provision("i1", { ...sync, parameters: { region: "eu", size: 2 } }),
    await flow.update("i1", { ...sync, parameters: { size: 3 } }),
    await flow.bind("i1", "b1", { ...sync, parameters: { role: "reader" } }),
    await flow.unbind("i1", "b1", sync),
    await flow.deprovision("i1", sync),
  ].map(({ status }) => status);
  expect(statuses).toEqual([201, 200, 201, 200, 200]);
  return Object.fromEntries(started.map(({ action, input }) => [action, input]));
}

test("a classic bundle has the parameters of its instance in every action that had them with the predecessor", async () => {
  const life = await lifeOf(classicServices);
  const shown = Object.entries(life).map(([name, { region, size, role, provision_params: provision }]) => [
    name,
    ...[region, size, role, provision],
  ]);
  const instance = { region: "eu", size: 3 };
  expect(shown).toEqual([
    ["provision", "eu", 2, undefined, undefined],
    ["update", "eu", 3, undefined, undefined],
    ["bind", undefined, undefined, "reader", undefined],
    ["unbind", undefined, undefined, "reader", instance],
    ["deprovision", "eu", 3, undefined, undefined],
  ]);
});

test("a bundle of the own format has what the user sent for this action, and knows the rest from its state", async () => {
  const life = await lifeOf(ownServices);
  expect(Object.entries(life).map(([name, { parameters, previous }]) => [name, parameters, previous])).toEqual([
    ["provision", { region: "eu", size: 2 }, undefined],
    ["update", { size: 3 }, { plan: "dev", parameters: { region: "eu", size: 2 } }],
    ["bind", { role: "reader" }, undefined],
    ["unbind", {}, undefined],
    ["deprovision", {}, undefined],
  ]);
});

test.each([64, 75])("exit code %d of a classic bundle is a failure as any other", async (exitCode) => {
  const started: Job[] = [];
  const flow = await offering(await classicServices(keepingRunner(started, exitCode)));
  const asked = { parameters: { region: "eu" } };
  expect((await flow.provision("i1", asked)).status).toBe(202);
  const description = `provision failed: the bundle ended with exit code ${exitCode}`;
  const last = async () => (await flow.lastOperation("i1")).body;
  await expect.poll(last).toMatchObject({ state: "failed", description: expect.stringContaining(description) });
  expect(started).toHaveLength(1);
});

import { join } from "node:path";
import { testBroker } from "@osbert/broker/testing";
import { systemClock } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import {
  bundleServices,
  type Digest,
  openBundleSource,
  openProcessRunner,
  parseSources,
  type Source,
} from "../src/index.js";
import { bundleFolder } from "./folder-services.js";

const apb =
  "version: 1.0\nname: hello-apb\ndescription: Hello\nbindable: false\nasync: optional\nplans:\n  - name: default\n    description: The one\n    free: true\n    parameters: []\n";

/** One image with a classic bundle of runtime 2. */
function oneImage() {
  const digest: Digest = `sha256:${"2b".repeat(32)}`;
  const artifact = { kind: "image", image: "registry.example/team/hello", digest } as const;
  let [lists, reads] = [0, 0];
  const source: Source = {
    async *repositories() {
      lists += 1;
      yield ["team/hello"];
    },
    tags: async () => ["latest"],
    resolve: async () => digest,
    read: async () => {
      reads += 1;
      return { kind: "bundle", format: "apb", text: apb, runtime: 2, artifact };
    },
    fetch: async () => undefined,
    probe: async () => undefined,
  };
  return { source, lists: () => lists, reads: () => reads };
}

const patience = { timeout: 20_000 };

test("F5-36: a bundle that was refused for its runtime alone is read again when it can be run, and not before", async () => {
  const { source, lists, reads } = oneImage();
  const store = memoryStore();
  const work = await bundleFolder();
  const parsed = parseSources({ registry: [{ type: "local_openshift", name: "local", namespaces: ["team"] }] });
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.faults));
  const start = async (runsRuntime2: boolean) => {
    const pushed = { list: async () => [], read: async () => null, fetch: async () => undefined };
    const ports = { readFile: async () => "", environment: () => undefined, folder: work, pushed };
    const services = bundleServices({
      sources: await Promise.all(
        parsed.sources.map((config) =>
          openBundleSource(config, { ...ports, imageStreams: async () => source }, { runsRuntime2 }),
        ),
      ),
      runner: (files) => openProcessRunner({ directory: join(work, "jobs"), files, unsandboxed: true }),
      mirror: join(work, "mirror"),
    });
    const flow = await testBroker({ services, store, journal: { clock: systemClock }, stderr: "nothing" });
    onTestFinished(() => flow.stop());
    const by = { actor: { platform: "test", subject: "ann" }, why: "test" } as never;
    return { flow, services, refresh: () => services.refresh("local", by) };
  };
  const record = (services: Awaited<ReturnType<typeof start>>["services"]) =>
    services.sources().get("local")?.specs.get("team/hello");

  const before = await start(false);
  await expect
    .poll(() => record(before.services), patience)
    .toMatchObject({ kind: "candidate", because: { code: "runtime" } });
  await before.flow.stop();

  const still = await start(false);
  const listed = lists();
  await still.refresh();
  await expect.poll(lists, patience).toBeGreaterThan(listed);
  await still.flow.stop();
  expect(reads()).toBe(1);

  const after = await start(true);
  await expect.poll(() => record(after.services), patience).toMatchObject({ kind: "service", refused: null });
  expect(reads()).toBe(2);
  const { body } = await after.flow.request("GET", "/v2/catalog");
  expect(body.services).toHaveLength(1);
});

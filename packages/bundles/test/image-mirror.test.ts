import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testBroker } from "@osbert/broker/testing";
import { systemClock } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { required } from "../../../tools/required.js";
import { type RunningServer, startRegistry } from "../../../tools/servers.js";
import {
  bundleServices,
  type MirrorPolicy,
  openBundleSource,
  openContainerRunner,
  parseSources,
} from "../src/index.js";
import { openTestEngine, type TestEngine, testEngineLeftOut } from "./test-engine.js";

const apb = `version: 1.0
name: hello-apb
description: Says hello
bindable: false
async: optional
plans:
  - name: default
    description: The only one
    free: true
    parameters: []
`;
const patiently = { timeout: 30_000 };
const sync = { acceptsIncomplete: false };

let home = "";
let engine: TestEngine | undefined;

/** A registry on images that stay where they are, wherever it listens. */
class Registry {
  readonly #images: string;
  #server: RunningServer | undefined;

  constructor(images: string) {
    this.#images = images;
  }

  get url(): string {
    return this.#server?.url ?? "";
  }

  async start(): Promise<boolean> {
    const server = required(
      "a registry whose images are mirrored",
      await startRegistry({ kind: "none" }, this.#images),
    );
    this.#server = server || undefined;
    if (this.#server === undefined) return false;
    const conf = `[[registry]]\nlocation = "${new URL(this.url).host}"\ninsecure = true\n`;
    await writeFile(join(home, "registries.conf"), conf);
    return true;
  }

  async stop(): Promise<void> {
    await this.#server?.stop();
    this.#server = undefined;
  }
}

async function start(
  url: string,
  { store = memoryStore(), mirror = "", policy = "onProvision" as MirrorPolicy, by = engine } = {},
) {
  if (by === undefined) throw new Error("no engine");
  const { program, engineArguments, runArguments, environment } = by;
  const work = await mkdtemp(join(home, "work-"));
  const parsed = parseSources({ sources: [{ name: "team", type: "distribution", url, default: "allow" }] });
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.faults));
  const ports = { readFile: async () => "", environment: () => undefined, folder: home };
  const pushed = { list: async () => [], read: async () => null, fetch: async () => undefined };
  const services = bundleServices({
    sources: await Promise.all(parsed.sources.map((source) => openBundleSource(source, { ...ports, pushed }))),
    runner: (files) =>
      openContainerRunner({
        ...{ engine: program, engineArguments, runArguments, files, baseImage: null },
        environment: { CONTAINERS_REGISTRIES_CONF: join(home, "registries.conf"), ...environment },
        directory: join(work, "jobs"),
      }),
    mirror: mirror === "" ? join(work, "mirror") : mirror,
    mirroring: policy,
  });
  const flow = await testBroker({ services, store, stderr: "nothing", journal: { clock: systemClock } });
  onTestFinished(() => flow.stop());
  const offered = async () => (await flow.request("GET", "/v2/catalog")).body.services?.length;
  await expect.poll(offered, patiently).toBe(1);
  return flow;
}

if (required("podman", testEngineLeftOut())) {
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), "osbert-image-mirror-"));
    engine = await openTestEngine();
  });
  afterAll(async () => {
    await engine?.remove();
    await rm(home, { recursive: true, force: true });
  });

  const pushed = async (format: "oci" | "v2s2") => {
    if (engine === undefined) throw new Error("no engine");
    const images = await mkdtemp(join(home, "registry-"));
    // The registry is a user of its own.
    for (const folder of [home, images]) await chmod(folder, 0o777);
    const registry = new Registry(images);
    if (!(await registry.start())) return undefined;
    onTestFinished(() => registry.stop());
    const root = await mkdtemp(join(home, "root-"));
    await mkdir(join(root, "opt"));
    await writeFile(join(root, "opt/entrypoint"), "#!/bin/bash\nexit 0\n", { mode: 0o755 });
    const name = await engine.image(`localhost/hello-${format}:1`, root, [
      'ENTRYPOINT ["/opt/entrypoint"]',
      `LABEL com.redhat.apb.spec=${Buffer.from(apb).toString("base64")}`,
    ]);
    const target = `${new URL(registry.url).host}/team/hello-apb:latest`;
    await engine.run("push", "--quiet", "--tls-verify=false", "--format", format, name, target);
    await engine.run("rmi", "--all", "--force");
    return registry;
  };

  const isDeprovisionedFromTheMirror = async (format: "oci" | "v2s2", by: TestEngine, removeImages: () => unknown) => {
    const registry = await pushed(format);
    if (registry === undefined) return;
    const flow = await start(registry.url, { by });
    const made = await flow.provision("i1", sync);
    expect([made.status, made.body]).toEqual([201, {}]);
    await registry.stop();
    await removeImages();
    const removed = await flow.deprovision("i1", sync);
    expect([removed.status, removed.body]).toEqual([200, {}]);
  };

  test.each(["oci", "v2s2"] as const)(
    "F5-34: an instance of an image (%s) is deprovisioned from the mirror when neither registry nor engine has it",
    async (format) => {
      const podman = engine as TestEngine;
      await isDeprovisionedFromTheMirror(format, podman, () => podman.run("rmi", "--all", "--force"));
    },
  );

  if (required("docker", testEngineLeftOut("docker"))) {
    test.each(["oci", "v2s2"] as const)(
      "F5-34: so it is with docker (%s), which asks nobody else for the image",
      async (format) => {
        const docker = await openTestEngine("docker");
        onTestFinished(() => docker.remove());
        await isDeprovisionedFromTheMirror(format, docker, async () => {
          const images = await docker.run("images", "--quiet", "--no-trunc");
          await docker.run("rmi", "--force", ...new Set(images.split("\n")));
          expect(await docker.run("images", "--quiet")).toBe("");
        });
      },
    );
  }

  test("F5-26: an image is pulled from where its source is now, not from where it was read", async () => {
    const registry = await pushed("oci");
    if (registry === undefined) return;
    const store = memoryStore();
    const flow = await start(registry.url, { store, policy: "never" });
    expect((await flow.provision("i1", sync)).status).toBe(201);
    await flow.stop();
    const before = registry.url;
    await registry.stop();
    await engine?.run("rmi", "--all", "--force");
    // Its old port is taken by the next one sometimes: then it has not moved.
    await registry.start();
    const moved = await start(registry.url, { store, policy: "never" });
    expect((await moved.deprovision("i1", sync)).status, `${before} to ${registry.url}`).toBe(200);
  });

  test("F5-34: with onDiscovery an image is mirrored before anybody asks for it; without it, what is gone is said to be", async () => {
    const registry = await pushed("oci");
    if (registry === undefined) return;
    const mirror = join(await mkdtemp(join(home, "mirror-")), "files");
    const [flow, other] = [
      await start(registry.url, { mirror, policy: "onDiscovery" }),
      await start(registry.url, { policy: "never" }),
    ];
    const kept = async () => (await readdir(mirror).catch(() => [])).filter((name) => name.startsWith("sha256-"));
    await expect.poll(kept, patiently).toHaveLength(1);
    // A registry that has lost its disk.
    const { url } = registry;
    const digest = (await kept())[0]?.replace("-", ":");
    expect((await fetch(`${url}/v2/team/hello-apb/manifests/${digest}`, { method: "DELETE" })).status).toBe(202);
    const made = await flow.provision("i1", sync);
    expect([made.status, made.body]).toEqual([201, {}]);
    await engine?.run("rmi", "--all", "--force");
    const gone = await other.provision("i1", sync);
    expect([gone.status, gone.body.description]).toEqual([500, expect.stringContaining("artifact gone")]);
    expect((await other.deprovision("i1", sync)).status).toBe(200);
  });
}

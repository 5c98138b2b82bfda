import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { findProgram, makeServerHome, runServer } from "../../../tools/server-process.js";
import { type LeftOut, startRegistry } from "../../../tools/servers.js";
import type { Artifact, Digest } from "../src/sources/source.js";

const execute = promisify(execFile);

export type EngineName = "podman" | "docker";

/** Podman or docker with images and containers of its own, which go at the end. */
export interface TestEngine {
  readonly home: string;
  readonly program: string;
  readonly engineArguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** The limits are what machines in machines allow. The programs are this machine's: the images have none. */
  readonly runArguments: readonly string[];
  readonly run: (...args: readonly string[]) => Promise<string>;
  /** Makes an image of a folder's files, and the places where programs are mounted; answers with its name. */
  image(name: string, files: string | null, changes?: readonly string[]): Promise<string>;
  /** As a source would tell of the image. Docker knows digests only of images that were in a registry. */
  published(name: string): Promise<Extract<Artifact, { kind: "image" }>>;
  remove(): Promise<void>;
}

export function testEngineLeftOut(name: EngineName = "podman"): LeftOut | { readonly name: EngineName } {
  const programs = {
    podman: ["podman", "runc"],
    docker: ["docker", "dockerd", "containerd", "runc", "docker-registry"],
  }[name];
  const missing = programs.filter((each) => findProgram(each) === undefined);
  const packages = name === "docker" ? "docker.io docker-registry" : missing.join(" ");
  if (missing.length > 0) return { leftOut: `no ${missing.join(", ")} found; apt-get install ${packages}` };
  if (process.getuid?.() !== 0) return { leftOut: `${name} is used as root here` };
  return { name };
}

export function openTestEngine(name: EngineName = "podman"): Promise<TestEngine> {
  return name === "podman" ? openPodman() : openDocker();
}

const runArguments = [
  ...["--ulimit", "nofile=20000:20000", "--ulimit", "nproc=4096:4096"],
  ...["/usr", "/etc/alternatives"].flatMap((folder) => ["--volume", `${folder}:${folder}:ro`]),
];

async function openPodman(): Promise<TestEngine> {
  const home = await mkdtemp(join(tmpdir(), "osbert-engine-"));
  const storage = ["--root", join(home, "images"), "--runroot", join(home, "run"), "--storage-driver", "overlay"];
  const engineArguments = [...storage, "--runtime", "runc", "--cgroup-manager=cgroupfs"];
  const run = runOf("podman", engineArguments, {});
  return {
    ...{ home, program: "podman", engineArguments, environment: {}, run },
    runArguments: [...runArguments, "--http-proxy=false"],
    image: (...args) => importImage(home, run, ...args),
    async published(image) {
      const digest = (await run("image", "inspect", "--format", "{{.Digest}}", image)) as Digest;
      return { kind: "image", image, digest };
    },
    async remove() {
      // Again, because what a test that failed has left may be making containers at this moment.
      const removeAll = () => run("rm", "--all", "--force", "--time", "0");
      await removeAll().catch(() => removeAll());
      // Podman leaves the place of its layers mounted onto itself.
      await execute("umount", [join(home, "images", "overlay")]).catch(() => undefined);
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** A daemon that touches nothing of the machine's own: no bridge, no rules of the firewall, no settings. It ends with this process. */
async function openDocker(): Promise<TestEngine> {
  const server = makeServerHome("docker", ["root"]);
  const [home, at] = [server.directory, (name: string) => join(server.directory, name)];
  await writeFile(at("settings.json"), "{}");
  const environment = { DOCKER_HOST: `unix://${at("socket")}`, DOCKER_CONFIG: at("client") };
  const options = [
    ...["--config-file", at("settings.json"), "--data-root", at("data"), "--exec-root", at("exec")],
    ...["--pidfile", at("pid"), "--host", environment.DOCKER_HOST, "--storage-driver", "vfs"],
    ...["--bridge", "none", "--iptables=false", "--ip6tables=false", "--shutdown-timeout", "1"],
  ];
  // With mounts of its own, which end with it: it leaves one behind in its folder, which then could not be removed.
  const daemon = runServer(server, 'exec unshare --mount dockerd "$@"', options, "TERM");
  const run = runOf("docker", [], environment);
  const fails = daemon.gone.then((log): never => {
    throw new Error(`dockerd ended: ${log}`);
  });
  fails.catch(() => undefined);
  const answers = () =>
    run("version").then(
      () => true,
      () => false,
    );
  for (let tries = 0; !(await Promise.race([answers(), fails])); tries++) {
    if (tries === 300) throw new Error("dockerd does not answer");
    await sleep(100);
  }
  let registry: Awaited<ReturnType<typeof startRegistry>> | undefined;
  return {
    ...{ home, program: "docker", engineArguments: [], environment, run, runArguments },
    image: (...args) => importImage(home, run, ...args),
    async published(name) {
      registry ??= await startRegistry({ kind: "none" });
      if ("leftOut" in registry) throw new Error(registry.leftOut);
      const image = `${new URL(registry.url).host}/${name.replace("localhost/", "")}`;
      await run("tag", name, image);
      await run("push", image);
      const known = await run("image", "inspect", "--format", "{{index .RepoDigests 0}}", image);
      return { kind: "image", image, digest: known.slice(image.length + 1) as Digest };
    },
    async remove() {
      const containers = await run("ps", "--all", "--quiet");
      if (containers !== "") await run("rm", "--force", ...containers.split("\n"));
      if (registry !== undefined && !("leftOut" in registry)) await registry.stop();
      await daemon.stop();
    },
  };
}

function runOf(program: string, before: readonly string[], environment: Readonly<Record<string, string>>) {
  return async (...args: readonly string[]) => {
    const env = { ...process.env, ...environment };
    const { stdout } = await execute(program, [...before, ...args], { maxBuffer: 2 ** 24, env });
    return stdout.trim();
  };
}

async function importImage(
  home: string,
  run: TestEngine["run"],
  name: string,
  files: string | null,
  changes: readonly string[] = [],
): Promise<string> {
  const root = await mkdtemp(join(home, "root-"));
  for (const folder of ["usr", "etc/alternatives", "tmp", "bundle", "run/osbert", "proc", "dev", "sys"]) {
    await mkdir(join(root, folder), { recursive: true });
  }
  for (const link of ["bin", "sbin", "lib", "lib64"]) await symlink(`usr/${link}`, join(root, link));
  if (files !== null) await execute("cp", ["-r", `${files}/.`, root]);
  await execute("tar", ["-cf", `${root}.tar`, "-C", root, "."]);
  await run("import", ...changes.flatMap((change) => ["--change", change]), `${root}.tar`, name);
  return name;
}

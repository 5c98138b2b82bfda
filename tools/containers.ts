import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { debianBaseEnv, makeDebianBase } from "./debian-base.js";
import type { NodeVersion } from "./node-versions.js";
import { findProgram } from "./server-process.js";
import type { LeftOut } from "./servers.js";

const run = promisify(execFile);

/** Podman and buildah with images of their own, which go at the end. */
export interface Containers {
  /** Builds the Dockerfile of a folder, on a base that is made here; answers the image's name. */
  build(folder: string, node: NodeVersion): Promise<string>;
  /** Runs podman; answers with what it printed. */
  readonly podman: (...args: readonly string[]) => Promise<string>;
  remove(): Promise<void>;
}

/** The limits are what machines in machines allow. A container outlives a test run that is killed, but not for long. */
const limits = ["--ulimit", "nofile=20000:20000", "--ulimit", "nproc=4096:4096", "--timeout", "600"];
const runOptions = [...limits, "--network", "host"];

export function provideContainers(): Containers | LeftOut {
  const missing = ["podman", "buildah", "runc", "debootstrap"].filter((name) => findProgram(name) === undefined);
  if (missing.length > 0) return { leftOut: `no ${missing.join(", ")} found; apt-get install ${missing.join(" ")}` };
  if (process.getuid?.() !== 0) return { leftOut: "debootstrap needs root" };
  const home = mkdtempSync(join(tmpdir(), "osbert-containers-"));
  const storage = ["--root", join(home, "images"), "--runroot", join(home, "run"), "--storage-driver", "overlay"];
  const podman = async (...args: readonly string[]) => {
    const [command = "", ...rest] = args;
    const options = command === "run" ? runOptions : [];
    const all = [...storage, "--runtime", "runc", "--cgroup-manager=cgroupfs", command, ...options, ...rest];
    const { stdout } = await run("podman", all, { maxBuffer: 2 ** 24 });
    return stdout.trim();
  };
  return {
    podman,
    async build(folder, node) {
      const base = join(home, "base");
      await makeDebianBase(base, node);
      const [tar, env] = [join(home, "base.tar"), Object.entries(debianBaseEnv)];
      await run("tar", ["-cf", tar, "-C", base, "."]);
      const changes = env.flatMap(([name, value]) => ["--change", `ENV ${name}=${value}`]);
      await podman("import", ...changes, tar, "localhost/base");
      await run("buildah", [...storage, ...buildOptions(await npmMounts(home)), folder], { maxBuffer: 2 ** 24 });
      return "localhost/broker";
    },
    async remove() {
      await podman("rm", "--all", "--force", "--time", "0");
      // Podman leaves the place of its layers mounted onto itself.
      await run("umount", [join(home, "images", "overlay")]).catch(() => undefined);
      rmSync(home, { recursive: true, force: true });
    },
  };
}

function buildOptions(mounts: readonly string[]): readonly string[] {
  const bases = ["BASE", "BUILD_BASE"].flatMap((name) => ["--build-arg", `${name}=localhost/base`]);
  // Only the format of Docker knows health checks.
  const format = ["--format", "docker", "--isolation", "chroot", "--network", "host"];
  return ["build-using-dockerfile", ...format, ...bases, ...mounts, "--tag", "localhost/broker"];
}

/** npm in the build reaches the registry as npm does here: by its address, and by whom it trusts. */
async function npmMounts(home: string): Promise<readonly string[]> {
  const settings = await Promise.all(
    ["registry", "cafile"].map(async (name) => {
      const { stdout } = await run("npm", ["config", "get", name], { cwd: home });
      return [name, stdout.trim()] as const;
    }),
  );
  const set = settings.filter(([, value]) => value !== "null" && value !== "");
  mkdirSync(join(home, "npm"), { recursive: true });
  const file = join(home, "npm", "npmrc");
  writeFileSync(file, set.map(([name, value]) => `${name}=${value}\n`).join(""));
  const authority = new Map(set).get("cafile");
  return ["--volume", `${file}:/root/.npmrc:ro`, ...(authority ? ["--volume", `${authority}:${authority}:ro`] : [])];
}

import { execFile, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { findProgram } from "../server-process.js";

const run = promisify(execFile);

export interface Image {
  /** The folder that is its root. */
  readonly root: string;
  /** What a pod's `args` are given to. Default: none. */
  readonly entrypoint?: readonly string[];
  readonly command: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

/** Makes an image of one layer and puts it into a registry (`127.0.0.1:PORT`) by its own interface; answers the name to run it by. */
export async function pushImage(registry: string, name: string, tag: string, image: Image): Promise<string> {
  const same = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  const options = { encoding: "buffer", maxBuffer: 2 ** 30 } as const;
  const { stdout: layer } = await run("tar", [...same, "-C", image.root, "-cf", "-", "."], options);
  const arch = process.arch === "x64" ? "amd64" : process.arch;
  const config = Buffer.from(
    JSON.stringify({
      architecture: arch,
      os: "linux",
      config: {
        Cmd: image.command,
        Entrypoint: image.entrypoint,
        Labels: image.labels,
        Env: Object.entries({ PATH: "/bin", ...image.env }).map((pair) => pair.join("=")),
      },
      rootfs: { type: "layers", diff_ids: [digest(layer)] },
    }),
  );
  const manifest = {
    schemaVersion: 2,
    mediaType: manifestType,
    config: { mediaType: "application/vnd.oci.image.config.v1+json", digest: digest(config), size: config.length },
    layers: [{ mediaType: "application/vnd.oci.image.layer.v1.tar", digest: digest(layer), size: layer.length }],
  };
  const repository = `http://${registry}/v2/${name}`;
  for (const blob of [layer, config]) await pushBlob(repository, blob);
  await put(`${repository}/manifests/${tag}`, manifestType, Buffer.from(JSON.stringify(manifest)));
  return `${registry}/${name}:${tag}`;
}

/** An image with busybox, the program of this machine that needs no library. Without a command, it does nothing until it is ended. */
export async function pushBusybox(registry: string): Promise<string> {
  const busybox = findProgram("busybox");
  if (busybox === undefined) throw new Error("no busybox found; apt-get install busybox-static");
  const root = mkdtempSync(join(tmpdir(), "osbert-image-"));
  try {
    for (const folder of ["bin", "etc", "tmp", "root"]) mkdirSync(join(root, folder));
    chmodSync(join(root, "tmp"), 0o1777);
    copyFileSync(busybox, join(root, "bin", "busybox"));
    const applets = execFileSync(busybox, ["--list"], { encoding: "utf8" }).trim().split("\n");
    for (const applet of applets.filter((name) => name !== "busybox"))
      symlinkSync("busybox", join(root, "bin", applet));
    writeFileSync(join(root, "etc", "passwd"), "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n");
    return await pushImage(registry, "osbert/busybox", "1", { root, command: ["/bin/sleep", "2147483647"] });
  } finally {
    rmSync(root, { recursive: true });
  }
}

const manifestType = "application/vnd.oci.image.manifest.v1+json";

async function pushBlob(repository: string, blob: Buffer): Promise<void> {
  const started = await fetch(`${repository}/blobs/uploads/`, { method: "POST" });
  const place = new URL(started.headers.get("location") ?? "", repository);
  place.searchParams.set("digest", digest(blob));
  await put(place.href, "application/octet-stream", blob);
}

async function put(url: string, type: string, body: Buffer): Promise<void> {
  const answer = await fetch(url, { method: "PUT", headers: { "content-type": type }, body: new Uint8Array(body) });
  if (answer.status !== 201) throw new Error(`the registry answered ${answer.status}: ${await answer.text()}`);
}

function digest(content: Buffer): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}

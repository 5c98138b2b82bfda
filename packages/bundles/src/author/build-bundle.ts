import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, open, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { bundleMediaTypes } from "../sources/bundle-media-types.js";
import type { Digest } from "../sources/source.js";
import { defaultSourceLimits } from "../sources/source-limits.js";
import { AuthorError } from "./author-error.js";
import type { BundleFolder } from "./bundle-folder.js";
import { sameTar, type TarEntry } from "./same-tar.js";
import { storedGzip } from "./stored-gzip.js";

export interface Blob {
  readonly mediaType: string;
  readonly digest: Digest;
  readonly bytes: Buffer;
}

/** A bundle as an OCI artifact. */
export interface BuiltBundle {
  readonly manifest: Blob;
  /** What the manifest names. */
  readonly blobs: readonly Blob[];
}

export const manifestMediaType = "application/vnd.oci.image.manifest.v1+json";

/**
 * Makes an OCI artifact of a bundle's folder. The same names, bytes and permissions to run make the same digest, on every machine and for
 * ever. Git's own folder is left out.
 */
export async function buildBundle({ folder, spec, bytes }: BundleFolder): Promise<BuiltBundle> {
  if (spec.format === "apb")
    throw new AuthorError(
      "a classic bundle (apb.yml) is an image; build it from its Dockerfile, with apb.yml in base64 as the label com.redhat.apb.spec",
    );
  const files = blob(bundleMediaTypes.files, storedGzip(await folderArchive(folder)));
  if (files.bytes.length > defaultSourceLimits.layerBytes)
    throw new AuthorError(`the files of ${folder} are more than ${defaultSourceLimits.layerBytes} bytes together`);
  const config = blob(bundleMediaTypes.config, bytes);
  const manifest = {
    schemaVersion: 2,
    mediaType: manifestMediaType,
    artifactType: bundleMediaTypes.artifact,
    config: describeBlob(config),
    layers: [describeBlob(files)],
  };
  return { manifest: blob(manifestMediaType, Buffer.from(JSON.stringify(manifest))), blobs: [config, files] };
}

/** The files of a folder as an archive that depends on them alone, not compressed. Git's own folder is left out. */
export async function folderArchive(folder: string): Promise<Buffer> {
  return sameTar(await entriesOf(folder));
}

/** A descriptor, as manifests and indexes have it. */
export function describeBlob({ mediaType, digest, bytes }: Blob) {
  return { mediaType, digest, size: bytes.length };
}

function blob(mediaType: string, bytes: Buffer): Blob {
  return { mediaType, bytes, digest: `sha256:${createHash("sha256").update(bytes).digest("hex")}` };
}

const leftOut = new Set([".git"]);

/** By the bytes of their names, whatever a file system or a locale thinks of them. */
async function entriesOf(folder: string, below = ""): Promise<readonly TarEntry[]> {
  const entries: TarEntry[] = [];
  const names = (await readdir(join(folder, below))).filter((name) => !leftOut.has(name));
  for (const name of names.sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))) {
    const path = below === "" ? name : `${below}/${name}`;
    const status = await lstat(join(folder, path));
    if (status.isDirectory()) entries.push({ kind: "folder", path }, ...(await entriesOf(folder, path)));
    else if (status.isSymbolicLink()) entries.push({ kind: "link", path, target: await readlink(join(folder, path)) });
    else if (status.isFile())
      entries.push({
        ...{ kind: "file", path, executable: (status.mode & 0o111) !== 0 },
        bytes: await readWithoutLinks(join(folder, path)),
      });
    else throw new AuthorError(`${path} is neither a file, a folder nor a link`);
  }
  return entries;
}

async function readWithoutLinks(path: string): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    return await file.readFile();
  } finally {
    await file.close();
  }
}

import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { HttpAnswer } from "./http-client.js";
import { asObject, parseJsonObject } from "./json-object.js";
import { type Descriptor, isDigest, type Manifest, parseManifest } from "./manifest.js";
import type { Digest } from "./source.js";
import { SourceError } from "./source-error.js";

/** Where a blob lies in an OCI image layout. */
export function layoutPath(digest: Digest): string {
  return `blobs/${digest.replace(":", "/")}`;
}

/** The two files that make a folder of blobs a layout of one image, the index last. */
export function layoutMarks(manifest: Descriptor): readonly { readonly path: string; readonly bytes: Buffer }[] {
  const index = {
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.index.v1+json",
    manifests: [manifest],
  };
  return [
    { path: "oci-layout", bytes: Buffer.from(JSON.stringify({ imageLayoutVersion: "1.0.0" })) },
    { path: "index.json", bytes: Buffer.from(JSON.stringify(index)) },
  ];
}

/** An image whose manifest was read and checked. */
export interface LayoutImage {
  readonly manifest: Descriptor;
  readonly manifestBytes: Buffer;
  /** Its config and its layers. */
  readonly blobs: readonly Descriptor[];
}

export type LayoutManifest = Pick<Extract<Manifest, { kind: "manifest" }>, "config" | "layers">;

/** Writes an image into an empty folder as an OCI image layout. Every blob is checked against its digest while it comes. */
export async function writeLayout(
  folder: string,
  { manifest, manifestBytes, blobs }: LayoutImage,
  blob: (descriptor: Descriptor) => Promise<HttpAnswer>,
  place: string,
): Promise<void> {
  await mkdir(join(folder, dirname(layoutPath(manifest.digest))), { recursive: true });
  // A layer may be in it twice.
  for (const descriptor of new Map(blobs.map((each) => [each.digest, each])).values())
    await writeBlob(join(folder, layoutPath(descriptor.digest)), await blob(descriptor), descriptor, place);
  const marks = layoutMarks(manifest);
  for (const { path, bytes } of [{ path: layoutPath(manifest.digest), bytes: manifestBytes }, ...marks])
    await writeFile(join(folder, path), bytes);
}

async function writeBlob(path: string, answer: HttpAnswer, { digest, size }: Descriptor, place: string): Promise<void> {
  const hash = createHash("sha256");
  let written = 0;
  const checked = new Transform({
    transform(chunk: Buffer, _, done) {
      written += chunk.length;
      hash.update(chunk);
      done(written > size ? new SourceError("digest mismatch", place, "longer than its manifest says") : null, chunk);
    },
  });
  try {
    await pipeline(answer.stream, checked, createWriteStream(path, { flags: "wx", mode: 0o644 }));
  } catch (error) {
    answer.drop();
    // What the file system says is no fault of the source.
    const isOwn = error instanceof SourceError || (error instanceof Error && "syscall" in error && "path" in error);
    throw isOwn ? error : answer.failure(error);
  }
  if (written !== size || `sha256:${hash.digest("hex")}` !== digest)
    throw new SourceError("digest mismatch", place, "a blob of the image");
}

/** The manifest of a layout's image; engines call the image by the digest of its config. `null`: the folder is no layout of an image. */
export async function readLayoutManifest(folder: string): Promise<LayoutManifest | null> {
  const read = (path: string) => readFile(join(folder, path)).catch(() => Buffer.alloc(0));
  const manifests = parseJsonObject(await read("index.json"))?.manifests;
  const digest = asObject(Array.isArray(manifests) ? manifests[0] : undefined)?.digest;
  if (!isDigest(digest)) return null;
  const manifest = parseManifest(await read(layoutPath(digest)));
  return manifest?.kind === "manifest" ? manifest : null;
}

/** The entry point of a layout's image. `null`: it has none, or the folder is no layout of an image. */
export async function readLayoutEntrypoint(folder: string): Promise<readonly string[] | null> {
  const manifest = await readLayoutManifest(folder);
  if (manifest === null) return null;
  const bytes = await readFile(join(folder, layoutPath(manifest.config.digest))).catch(() => Buffer.alloc(0));
  const entrypoint = asObject(parseJsonObject(bytes)?.config)?.Entrypoint;
  if (!Array.isArray(entrypoint) || entrypoint.length === 0) return null;
  return entrypoint.every((word) => typeof word === "string") ? entrypoint : null;
}

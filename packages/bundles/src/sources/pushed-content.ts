import { Readable } from "node:stream";
import { describeManifest } from "./describe-manifest.js";
import { digestOf } from "./digest-of.js";
import { extractBundle } from "./extract-files.js";
import { type Descriptor, type Manifest, parseManifest } from "./manifest.js";
import type { Digest, ReadBundle } from "./source.js";
import { SourceError } from "./source-error.js";
import type { SourceLimits } from "./source-limits.js";

/** What was pushed, whole. */
export type PushedContent =
  /** An OCI artifact, as `osbert bundle build` makes it: what a registry would have of it. */
  | { readonly kind: "artifact"; readonly manifest: Buffer; readonly blobs: readonly Buffer[] }
  /** A classic bundle: an image that lies in a registry, and what its label would say. */
  | {
      readonly kind: "image";
      /** Without its digest. */
      readonly image: string;
      readonly digest: Digest;
      readonly runtime: number;
      readonly text: string;
    };

/** Of an artifact the one that it has in every registry. */
export function pushedDigest(content: PushedContent): Digest {
  if (content.kind === "artifact") return digestOf(content.manifest);
  const { image, digest, runtime, text } = content;
  return digestOf(Buffer.from(JSON.stringify([image, digest, runtime, text])));
}

/** As a source reads it: by the same rules as what comes from a registry. */
export async function readPushed(
  content: PushedContent,
  repository: string,
  limits: SourceLimits,
  place: string,
): Promise<ReadBundle> {
  if (content.kind === "image") {
    const { image, digest, runtime, text } = content;
    return { kind: "bundle", format: "apb", text, runtime, artifact: { kind: "image", image, digest } };
  }
  const described = await describeManifest(manifestOf(content, place), limits, place, async (descriptor) =>
    blobOf(content, descriptor, place),
  );
  if (described.kind !== "bundle") return described;
  const { runs, ...bundle } = described;
  if (runs !== "files") return { kind: "not a bundle", why: "an image; it is pushed by its name" };
  return { ...bundle, artifact: { kind: "files", repository, digest: pushedDigest(content) } };
}

/** As `fetch` of a source. */
export async function extractPushed(
  content: PushedContent,
  folder: string,
  limits: SourceLimits,
  place: string,
): Promise<void> {
  if (content.kind === "image") throw new SourceError("malformed", place, "an image has no files of its own");
  await extractBundle(manifestOf(content, place), folder, limits, place, async (layer) => ({
    stream: Readable.from([blobOf(content, layer, place)]),
    failure: (error) => (error instanceof Error ? error : new Error("it broke off", { cause: error })),
    drop: () => undefined,
  }));
}

type PushedArtifact = PushedContent & { readonly kind: "artifact" };

function manifestOf({ manifest }: PushedArtifact, place: string): Manifest {
  const parsed = parseManifest(manifest);
  if (parsed === undefined) throw new SourceError("malformed", place, "no manifest");
  return parsed;
}

function blobOf({ blobs }: PushedArtifact, { digest, size }: Descriptor, place: string): Buffer {
  const found = blobs.find((blob) => blob.length === size && digestOf(blob) === digest);
  if (found === undefined)
    throw new SourceError("malformed", place, `its manifest names ${digest}, which is not there`);
  return found;
}

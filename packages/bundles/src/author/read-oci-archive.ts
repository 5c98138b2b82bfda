import { Parser, type ReadEntry } from "tar";
import { asObject, parseJsonObject } from "../sources/json-object.js";
import { isDigest, parseManifest } from "../sources/manifest.js";
import { AuthorError } from "./author-error.js";

/** An OCI artifact, as it is written in an archive. */
export interface ArchivedBundle {
  readonly manifest: Buffer;
  /** What the manifest names, in its order. */
  readonly blobs: readonly Buffer[];
}

const notOurs = "is not an archive of one bundle; `osbert bundle build --out FILE` makes one";

/** Reads an OCI archive of one artifact, as `osbert bundle build` and `skopeo copy … oci-archive:FILE` write it. */
export async function readOciArchive(file: string, bytes: Buffer): Promise<ArchivedBundle> {
  const files = await filesOf(bytes).catch((cause: unknown) => {
    throw new AuthorError(`${file} ${notOurs}`, { cause });
  });
  const index = parseJsonObject(files.get("index.json") ?? Buffer.alloc(0));
  const listed = Array.isArray(index?.manifests) ? index.manifests : [];
  const manifest = listed.length === 1 ? blobOf(files, asObject(listed[0])?.digest) : undefined;
  const parsed = manifest && parseManifest(manifest);
  if (manifest === undefined || parsed?.kind !== "manifest") throw new AuthorError(`${file} ${notOurs}`);
  const blobs = [parsed.config, ...parsed.layers].map(({ digest }) => {
    const blob = blobOf(files, digest);
    if (blob === undefined) throw new AuthorError(`${file} lacks ${digest}, which its manifest names`);
    return blob;
  });
  return { manifest, blobs };
}

function blobOf(files: ReadonlyMap<string, Buffer>, digest: unknown): Buffer | undefined {
  return isDigest(digest) ? files.get(`blobs/${digest.replace(":", "/")}`) : undefined;
}

/** In memory: whoever has read the archive has bounded it, and nothing in it is unpacked any further. */
function filesOf(bytes: Buffer): Promise<ReadonlyMap<string, Buffer>> {
  return new Promise((resolve, reject) => {
    const files = new Map<string, Buffer>();
    const parser = new Parser({ strict: true, maxDecompressionRatio: 1 });
    parser.on("error", reject);
    parser.on("entry", (entry: ReadEntry) => {
      const chunks: Buffer[] = [];
      entry.on("data", (chunk: Buffer) => chunks.push(chunk));
      entry.on("end", () => files.set(entry.path.replace(/^\.\//, ""), Buffer.concat(chunks)));
    });
    parser.on("end", () => resolve(files));
    parser.end(bytes);
  });
}

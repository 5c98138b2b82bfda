import { createHash } from "node:crypto";
import { lstat, mkdir, open, readdir, realpath, rm, symlink } from "node:fs/promises";
import { dirname, join, normalize, sep } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { Parser, type ReadEntry } from "tar";
import { bundleMediaTypes } from "./bundle-media-types.js";
import type { HttpAnswer } from "./http-client.js";
import type { Descriptor, Manifest } from "./manifest.js";
import { SourceError } from "./source-error.js";
import type { SourceLimits } from "./source-limits.js";

/** What is left for the layers of one bundle together. */
interface FilesBudget {
  bytes: number;
  files: number;
}

/** A layer as it comes, wherever from. */
export type LayerStream = Pick<HttpAnswer, "stream" | "failure" | "drop">;

/**
 * Puts the files of a bundle into an empty folder: all its layers, one over the other, and no link leads out. After a throw the folder is
 * empty again.
 */
export async function extractBundle(
  manifest: Manifest,
  folder: string,
  limits: SourceLimits,
  place: string,
  layerStream: (layer: Descriptor) => Promise<LayerStream>,
): Promise<void> {
  if (manifest.kind !== "manifest" || manifest.artifactType !== bundleMediaTypes.artifact)
    throw new SourceError("malformed", place, "not a bundle of files");
  const layers = manifest.layers.filter(({ mediaType }) => mediaType === bundleMediaTypes.files);
  if (layers.length > limits.layers) throw new SourceError("too large", place, `more than ${limits.layers} layers`);
  const budget: FilesBudget = { bytes: limits.filesBytes, files: limits.files };
  try {
    for (const layer of layers) {
      if (layer.size > limits.layerBytes) throw new SourceError("too large", place, `a layer of ${layer.size} bytes`);
      await extractLayer(await layerStream(layer), layer, folder, budget, place);
    }
    await checkLinks(folder, place);
  } catch (error) {
    await emptyFolder(folder);
    throw error;
  }
}

/**
 * Unpacks a layer into a folder while it comes. Whoever made the archive is not trusted: names that lead out, links that do, devices, and
 * more than the budget end it. The digest is known only at the end, so what is in the folder counts only after this and `checkLinks`.
 * When it throws, nothing of it writes any more.
 *
 * The archive is taken apart by `tar` and written here, one entry after the other: the writer of `tar` has several files under way, and does
 * not say when the last of them is done after one has failed.
 */
async function extractLayer(
  answer: LayerStream,
  layer: Descriptor,
  folder: string,
  budget: FilesBudget,
  place: string,
): Promise<void> {
  const hash = createHash("sha256");
  let size = 0;
  const hashed = new Transform({
    transform(chunk: Buffer, _, done) {
      size += chunk.length;
      hash.update(chunk);
      done(
        size > layer.size ? new SourceError("digest mismatch", place, "longer than its manifest says") : null,
        chunk,
      );
    },
  });
  const counted = new Transform({
    transform(chunk: Buffer, _, done) {
      budget.bytes -= chunk.length;
      done(budget.bytes < 0 ? new SourceError("too large", place, "its files, unpacked") : null, chunk);
    },
  });
  let unpacked: Promise<void> = Promise.resolve();
  try {
    await pipeline(answer.stream, hashed, createGunzip(), counted, (chunks: AsyncIterable<Buffer>) => {
      unpacked = unpack(chunks, async (entry) => {
        if (budget.files-- <= 0) throw new SourceError("too large", place, "its files, by their number");
        const why = whyNot(entry) ?? (await writeEntry(entry, folder));
        if (why !== null) throw new SourceError("malformed", place, why);
      });
      return unpacked;
    });
  } catch (error) {
    answer.drop();
    // The pipeline is over with its first error, the file that was being written is not. What stopped the writing says more than what
    // became of the streams before it.
    const cause = await unpacked.then(
      () => error,
      (own: unknown) => (isBrokenOff(own) ? error : own),
    );
    throw archiveFailure(cause, answer, place);
  }
  if (`sha256:${hash.digest("hex")}` !== layer.digest || size !== layer.size)
    throw new SourceError("digest mismatch", place);
}

/** Hands on the entries of an archive one by one. It ends when the last one was dealt with, also if it ends in a throw. */
async function unpack(chunks: AsyncIterable<Buffer>, deal: (entry: ReadEntry) => Promise<void>): Promise<void> {
  // A ratio of 1: an archive with another compression inside would be unpacked past all counting.
  const parser = new Parser({ strict: true, maxDecompressionRatio: 1 });
  let current: ReadEntry | undefined;
  let dealt = Promise.resolve();
  const failed = new Promise<never>((_, reject) => {
    parser.on("error", reject);
    parser.on("entry", (entry: ReadEntry) => {
      current = entry;
      dealt = dealt.then(() => deal(entry)).then(() => void entry.resume());
      dealt.catch(reject);
    });
  });
  failed.catch(() => undefined);
  const event = (name: string) => new Promise<void>((resolve) => void parser.once(name, () => resolve()));
  try {
    for await (const chunk of chunks) {
      const drained = event("drain");
      if (!parser.write(chunk)) await Promise.race([failed, drained]);
    }
    const ended = event("end");
    parser.end();
    await Promise.race([failed, ended]);
    await Promise.race([failed, dealt]);
  } catch (error) {
    // Whoever waits for the rest of an entry would wait for ever.
    current?.on("error", () => undefined).destroy(error);
    await dealt.catch(() => undefined);
    throw error;
  }
}

/** Why an entry of an archive is not unpacked, or `null`. */
function whyNot({ path, type, linkpath }: ReadEntry): string | null {
  if (![...fileTypes, "Directory", "SymbolicLink"].includes(type)) return `an entry of type ${type} in the archive`;
  if (!isInside(path)) return "a name in the archive leads out of its folder";
  if (type !== "SymbolicLink") return null;
  const isOut = linkpath === undefined || !isInside(linkpath, dirname(path));
  return isOut ? "a link in the archive leads out of its folder" : null;
}

const fileTypes: readonly string[] = ["File", "OldFile", "ContiguousFile"];

function isInside(name: string, from = ""): boolean {
  if (name === "" || name.length > 1_024 || name.startsWith("/") || /[\\\0]/.test(name)) return false;
  const parts = normalize(join(from, name)).split(sep);
  return parts[0] !== ".." && parts.length <= 64;
}

/** Whether a file can be run is all that is kept of its mode: no owner, no set-user-id, nothing that could not be removed again. */
async function writeEntry(entry: ReadEntry, folder: string): Promise<string | null> {
  const parts = normalize(entry.path)
    .split(sep)
    .filter((part) => part !== "" && part !== ".");
  const last = entry.type === "Directory" ? undefined : parts.pop();
  let path = folder;
  for (const part of parts) {
    path = join(path, part);
    const status = await lstat(path).catch(() => undefined);
    if (status === undefined) await mkdir(path, { mode: 0o755 });
    // Through a link, a name that looks as if it were inside would be elsewhere.
    else if (!status.isDirectory()) return "a name in the archive goes through what is no folder";
  }
  if (entry.type === "Directory") return null;
  if (last === undefined) return "an entry without a name in the archive";
  path = join(path, last);
  await rm(path, { recursive: true, force: true });
  if (entry.type === "SymbolicLink") {
    await symlink(entry.linkpath ?? "", path);
    return null;
  }
  const file = await open(path, "wx", ((entry.mode ?? 0) & 0o111) === 0 ? 0o644 : 0o755);
  try {
    for await (const chunk of entry) await file.writeFile(chunk);
  } finally {
    await file.close();
  }
  return null;
}

/** A link of a folder that leads out of it, or to nothing; `null`: there is none. Names alone do not tell: a link may go through another one. */
export async function findLinkOut(folder: string): Promise<string | null> {
  const root = await realpath(folder);
  for (const name of await readdir(folder, { recursive: true })) {
    const path = join(folder, name);
    if (!(await lstat(path)).isSymbolicLink()) continue;
    const target = await realpath(path).catch(() => "");
    if (target !== root && !target.startsWith(`${root}${sep}`)) return name;
  }
  return null;
}

/** Throws if a link leads out of a folder. */
export async function checkLinks(folder: string, place: string): Promise<void> {
  const link = await findLinkOut(folder);
  if (link !== null) throw new SourceError("malformed", place, "a link in it leads out of its folder, or to nothing");
}

export async function emptyFolder(folder: string): Promise<void> {
  for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true, force: true });
}

/** What the last of several streams says when one before it has failed. */
function isBrokenOff(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "ABORT_ERR" || code === "ERR_STREAM_PREMATURE_CLOSE";
}

function archiveFailure(error: unknown, answer: LayerStream, place: string): unknown {
  if (error instanceof SourceError) return error;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  // What the file system says is no fault of the source.
  if (error instanceof Error && "syscall" in error && "path" in error) return error;
  const isArchive = code.startsWith("Z_") || (error instanceof Error && "tarCode" in error);
  if (isArchive) return new SourceError("malformed", place, "not a tar archive with gzip", { cause: error });
  return answer.failure(error);
}

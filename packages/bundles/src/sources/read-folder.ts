import { createHash, type Hash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, lstat, open, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { BundleFormat, Digest } from "./source.js";
import { SourceError } from "./source-error.js";
import type { SourceLimits } from "./source-limits.js";

/** A bundle's folder, as it was read once. */
export interface FolderContent {
  /** Of the names, of who can be run, and of every byte, in one order: the same on every machine. */
  readonly digest: Digest;
  /** The bytes that the digest covers, of the file that makes the folder a bundle; `null`: it has none. */
  readonly spec: { readonly format: BundleFormat; readonly bytes: Buffer } | null;
}

const specFiles: Readonly<Record<string, BundleFormat>> = { "osbert.yaml": "osbert", "apb.yml": "apb" };

/** Reads a folder without following any link, and without opening what is no file: a pipe would be waited for. */
export async function readFolder(
  folder: string,
  limits: SourceLimits,
  place: string,
  signal: AbortSignal,
): Promise<FolderContent> {
  const hash = createHash("sha256");
  const specs = new Map<string, Buffer>();
  let bytesLeft = limits.filesBytes;
  let filesLeft = limits.files;
  const visit = async (below: string): Promise<void> => {
    const names = await readdir(join(folder, below));
    // By their bytes: what a locale thinks of them is another matter on another machine.
    for (const name of names.sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))) {
      signal.throwIfAborted();
      if (filesLeft-- <= 0) throw new SourceError("too large", place, `more than ${limits.files} files`);
      const path = below === "" ? name : `${below}/${name}`;
      const status = await lstat(join(folder, path));
      if (status.isDirectory()) {
        line(hash, ["folder", path]);
        await visit(path);
      } else if (status.isSymbolicLink()) {
        line(hash, ["link", path, await readlink(join(folder, path))]);
      } else if (status.isFile()) {
        const file = await open(join(folder, path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
        try {
          const { sha256, size, kept } = await readWhole(file, bytesLeft, path in specFiles, place);
          bytesLeft -= size;
          line(hash, ["file", path, (status.mode & 0o111) !== 0, size, sha256]);
          if (kept !== null) specs.set(path, kept);
        } finally {
          await file.close();
        }
      } else throw new SourceError("malformed", place, "something that is neither a file, a folder nor a link");
    }
  };
  await visit("");
  const [name] = Object.keys(specFiles).filter((each) => specs.has(each));
  const bytes = specs.get(name ?? "");
  const format = specFiles[name ?? ""];
  return {
    digest: `sha256:${hash.digest("hex")}`,
    spec: bytes === undefined || format === undefined ? null : { format, bytes },
  };
}

function line(hash: Hash, values: readonly unknown[]): void {
  hash.update(`${JSON.stringify(values)}\n`);
}

async function readWhole(file: FileHandle, most: number, keep: boolean, place: string) {
  const hash = createHash("sha256");
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of file.createReadStream({ autoClose: false })) {
    const bytes = chunk as Buffer;
    size += bytes.length;
    if (size > most) throw new SourceError("too large", place, "its files together");
    hash.update(bytes);
    if (keep) chunks.push(bytes);
  }
  return { sha256: hash.digest("hex"), size, kept: keep ? Buffer.concat(chunks) : null };
}

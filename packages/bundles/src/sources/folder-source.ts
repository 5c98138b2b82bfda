import { cp, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { checkLinks, emptyFolder, findLinkOut } from "./extract-files.js";
import { decodeUtf8 } from "./label-bundle.js";
import { isRepositoryName } from "./names.js";
import { type FolderContent, readFolder } from "./read-folder.js";
import type { Digest, ReadBundle, Ref, Source } from "./source.js";
import { SourceError } from "./source-error.js";
import type { SourceLimits } from "./source-limits.js";

/** The one tag that a bundle in a folder has. */
export const folderTag = "latest";

/** The folders of a folder: each with an osbert.yaml or an apb.yml is a bundle. */
export function folderSource(path: string, limits: SourceLimits): Source {
  return new FolderSource(path, limits);
}

class FolderSource implements Source {
  readonly #path: string;
  readonly #limits: SourceLimits;

  constructor(path: string, limits: SourceLimits) {
    this.#path = path;
    this.#limits = limits;
  }

  async *repositories(signal: AbortSignal): AsyncGenerator<readonly string[]> {
    const names: string[] = [];
    for (const name of await this.#names()) {
      signal.throwIfAborted();
      if (await this.#isBundle(name)) names.push(name);
    }
    if (names.length > this.#limits.repositories)
      throw new SourceError("too large", this.#path, `${names.length} bundles`);
    yield names;
  }

  async tags(repository: string): Promise<readonly string[] | null> {
    return (await this.#isThere(repository)) ? [folderTag] : null;
  }

  async resolve({ repository, tag }: Ref, signal: AbortSignal): Promise<Digest | null> {
    if (tag !== folderTag || !(await this.#isThere(repository))) return null;
    return (await this.#read(repository, signal)).digest;
  }

  async read(repository: string, digest: Digest, signal: AbortSignal): Promise<ReadBundle> {
    const content = await this.#read(repository, signal);
    // It is there, and was changed a moment ago: the next look finds what it is now.
    if (content.digest !== digest) throw new SourceError("digest mismatch", this.#place(repository), changed);
    const { spec } = content;
    if (spec === null) return { kind: "not a bundle", why: "neither osbert.yaml nor apb.yml in it" };
    const { format, bytes } = spec;
    if (bytes.length > this.#limits.specBytes)
      return { kind: "invalid", why: `its description is larger than ${this.#limits.specBytes} bytes` };
    const text = decodeUtf8(bytes);
    if (text === undefined) return { kind: "invalid", why: "its description is not UTF-8" };
    const link = await findLinkOut(join(this.#path, repository));
    if (link !== null) return { kind: "invalid", why: `the link ${link} leads out of its folder, or to nothing` };
    return { kind: "bundle", format, text, runtime: null, artifact: { kind: "files", repository, digest } };
  }

  /** A copy, because the folder may change at any moment; the digest of the copy is what tells that it is the one that was asked for. */
  async fetch(repository: string, digest: Digest, folder: string, signal: AbortSignal): Promise<void> {
    const place = this.#place(repository);
    const gone = () => new SourceError("not found", place, changed);
    if (!(await this.#isThere(repository))) throw new SourceError("not found", place);
    if ((await this.#read(repository, signal)).digest !== digest) throw gone();
    try {
      await cp(place, folder, { recursive: true, verbatimSymlinks: true });
      const copy = await readFolder(folder, this.#limits, place, signal);
      if (copy.digest !== digest) throw gone();
      await checkLinks(folder, place);
    } catch (error) {
      await emptyFolder(folder);
      throw error;
    }
  }

  async probe(): Promise<void> {
    await this.#names();
  }

  async #read(repository: string, signal: AbortSignal): Promise<FolderContent> {
    const place = this.#place(repository);
    try {
      return await readFolder(place, this.#limits, place, signal);
    } catch (error) {
      if (error instanceof Error && "code" in error)
        throw new SourceError("unreachable", place, String(error.code), { cause: error });
      throw error;
    }
  }

  /** A folder that cannot be listed, because its disk is not mounted, must not make one bundle in it absent. */
  async #isThere(repository: string): Promise<boolean> {
    this.#place(repository);
    return (await this.#names()).includes(repository) && (await this.#isBundle(repository));
  }

  async #names(): Promise<readonly string[]> {
    try {
      return await readdir(this.#path);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : null;
      throw new SourceError("unreachable", this.#path, code, { cause: error });
    }
  }

  async #isBundle(name: string): Promise<boolean> {
    for (const file of ["osbert.yaml", "apb.yml"]) {
      const status = await stat(join(this.#path, name, file)).catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
        throw new SourceError("unreachable", join(this.#path, name), error.code ?? null, { cause: error });
      });
      if (status?.isFile()) return true;
    }
    return false;
  }

  #place(repository: string): string {
    if (!isRepositoryName(repository))
      throw new SourceError("malformed", this.#path, "a folder with an impossible name");
    return join(this.#path, repository);
  }
}

const changed = "it has been changed meanwhile";

import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Artifact, Source } from "../sources/source.js";

/** Stands beside a folder that nothing refers to, and says since when. */
const markSuffix = ".unused";

/** Nothing and nobody has it any more. */
export class ArtifactGone extends Error {
  override readonly name = "ArtifactGone";
}

/** What is kept of artifacts, and when it is fetched (F5-34). Files are always fetched to be run; of images, `never` leaves them to the engine. */
export const mirrorPolicies = ["never", "onProvision", "onDiscovery"] as const;

export type MirrorPolicy = (typeof mirrorPolicies)[number];

/** An artifact that lies in a source. */
export type Mirrored = Artifact & { readonly repository: string };

/**
 * Artifacts in folders by their digests: files, or images as OCI layouts. The folder may be one that machines share: what has its name is
 * whole, because it is renamed into place. What an instance was made of stays here: it is deprovisioned with it
 * when the registry has lost it (F5-34).
 */
export class ArtifactMirror {
  readonly #directory: string;
  readonly #fetching = new Map<string, Promise<void>>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Where an artifact is, or will be. */
  folderOf({ digest }: Artifact): string {
    return join(this.#directory, folderName(digest));
  }

  /** Fetches an artifact unless it is here already. Asked for twice at a time, it is fetched once. */
  async have(artifact: Mirrored, source: () => Source | undefined, signal: AbortSignal): Promise<void> {
    const folder = this.folderOf(artifact);
    if (await isFolder(folder)) return;
    const fetching =
      this.#fetching.get(folder) ??
      this.#fetch(artifact, source(), folder, signal).finally(() => this.#fetching.delete(folder));
    this.#fetching.set(folder, fetching);
    await fetching;
  }

  /**
   * Removes what nothing has referred to for so long (F5-53). What is found without a reference is marked first, and removed by a later
   * sweep if it has none then either: a revision may come back meanwhile. What a killed process has left half fetched goes the same way.
   * Answers the names of what was removed.
   */
  async sweep(digests: ReadonlySet<string>, now: number, unusedMs: number): Promise<readonly string[]> {
    const names = await readdir(this.#directory).catch((): string[] => []);
    const used = new Set([...digests].map(folderName));
    const removed: string[] = [];
    for (const name of names.filter((each) => !each.endsWith(markSuffix))) {
      const folder = join(this.#directory, name);
      const mark = `${folder}${markSuffix}`;
      const isMarked = names.includes(`${name}${markSuffix}`);
      if (used.has(name)) {
        if (isMarked) await rm(mark, { force: true });
        continue;
      }
      const since = isMarked ? Number(await readFile(mark, "utf8").catch(() => Number.NaN)) : Number.NaN;
      if (!(since <= now)) await writeFile(mark, String(now));
      else if (now - since >= unusedMs) {
        // Under another name first: a folder that has its name has all its files.
        const going = join(this.#directory, `.${randomUUID()}`);
        await rename(folder, going);
        await rm(going, { recursive: true, force: true });
        await rm(mark, { force: true });
        removed.push(name);
      }
    }
    return removed;
  }

  /** Whole under another name first: a folder that has its name has all its files. */
  async #fetch(
    { kind, repository, digest }: Mirrored,
    source: Source | undefined,
    folder: string,
    signal: AbortSignal,
  ): Promise<void> {
    if (source === undefined) {
      throw new ArtifactGone(`the bundle ${repository} is not kept here, and its source is not configured any more`);
    }
    await mkdir(this.#directory, { recursive: true, mode: 0o755 });
    const making = join(this.#directory, `.${randomUUID()}`);
    await mkdir(making, { mode: 0o755 });
    try {
      if (kind === "files") await source.fetch(repository, digest, making, signal);
      else if (source.fetchImage !== undefined) await source.fetchImage(repository, digest, making, signal);
      else throw new ArtifactGone(`the image ${repository} is not kept here, and its source has no images`);
      await rename(making, folder);
    } catch (error) {
      await rm(making, { recursive: true, force: true });
      // Another process was faster.
      if (!(await isFolder(folder))) throw error;
    }
  }
}

function folderName(digest: string): string {
  return digest.replace(":", "-");
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

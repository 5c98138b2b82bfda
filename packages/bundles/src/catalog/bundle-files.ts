import type { Journal } from "@osbert/journal";
import type { CatalogEntry } from "../reconcile/merge-sources.js";
import { revisionPart, sourceKey } from "../reconcile/records.js";
import type { Artifact, Source } from "../sources/source.js";
import { ArtifactGone, ArtifactMirror, type MirrorPolicy } from "./artifact-mirror.js";
import { keptRevisions, keptSources, readRevisions } from "./kept-sources.js";
import { MirrorOffered } from "./mirror-offered.js";

export interface BundleFilesPorts {
  readonly journal: () => Journal;
  /** By its first name. `undefined`: this process is not configured with it. */
  readonly source: (identityName: string) => Source | undefined;
  /** What is offered now. */
  readonly entries: () => Iterable<CatalogEntry>;
  /** The mirror's folder. */
  readonly directory: string;
  readonly policy: MirrorPolicy;
  /** How long what no revision refers to is kept. */
  readonly unusedMs: number;
}

/** Of an image, for a runner that says nothing itself. */
const longestFetchMs = 60 * 60_000;

/** Where the files of bundles lie on this machine: fetched from their sources, mirrored by the operator's policy, and swept. */
export class BundleFiles {
  readonly #ports: BundleFilesPorts;
  readonly #mirror: ArtifactMirror;
  readonly #offered: MirrorOffered;

  constructor(ports: BundleFilesPorts) {
    this.#ports = ports;
    this.#mirror = new ArtifactMirror(ports.directory);
    this.#offered = new MirrorOffered({
      entries: ports.entries,
      mirror: (entry, signal) => this.#mirrorEntry(entry, signal),
    });
  }

  /** For a runner. Images only when a runner that can run them asks: files it was given before. */
  async folderOf(artifact: Artifact, signal = AbortSignal.timeout(longestFetchMs)): Promise<string> {
    if (artifact.kind === "image") {
      const { source, repository } = artifact;
      if (this.#ports.policy === "never" || source === undefined || repository === undefined)
        throw new ArtifactGone(`the image ${artifact.image} is not mirrored`);
      await this.#mirror.have({ ...artifact, repository }, () => this.#ports.source(source), signal);
    }
    return this.#mirror.folderOf(artifact);
  }

  /** As a runner is to run it: the host of an image is where its source is now, whatever it was when the revision was read (F5-26). */
  async fetch(source: string, artifact: Artifact, signal: AbortSignal): Promise<Artifact> {
    if (artifact.kind === "files") {
      await this.#mirror.have(artifact, () => this.#ports.source(source), signal);
      return artifact;
    }
    const { repository, image } = artifact;
    if (repository === undefined) return artifact;
    return { ...artifact, image: this.#ports.source(source)?.imageOf?.(repository) ?? image, source };
  }

  /** In the background, and only if the policy is to have all that is offered. */
  mirrorOffered(): void {
    if (this.#ports.policy === "onDiscovery") void this.#offered.look();
  }

  /** Removes what no revision refers to: of any source, because the folder may be one that processes with other sources share. */
  async sweep(): Promise<void> {
    const journal = this.#ports.journal();
    const digests = new Set<string>();
    for (const { identityName } of await keptSources(journal))
      for await (const { value } of keptRevisions(journal, sourceKey(identityName))) digests.add(value.artifact.digest);
    await this.#mirror.sweep(digests, journal.now(), this.#ports.unusedMs);
  }

  /** The broker stops. */
  close(): void {
    this.#offered.stop();
  }

  async #mirrorEntry({ source, spec, current }: CatalogEntry, signal: AbortSignal): Promise<void> {
    const part = revisionPart(spec, current.digest);
    const revision = (await readRevisions(this.#ports.journal(), sourceKey(source), [part])).get(part);
    if (revision !== undefined) await this.folderOf(await this.fetch(source, revision.artifact, signal), signal);
  }
}

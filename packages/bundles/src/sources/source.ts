/** A tag of a repository: what a registry is asked for. */
export interface Ref {
  /** Without the registry's host: `team/postgres-bundle`. In a folder, the path below it. */
  readonly repository: string;
  readonly tag: string;
}

/** `sha256:` and 64 hexadecimal digits. Of a manifest; of a folder, of all that is in it. */
export type Digest = `sha256:${string}`;

/** What an artifact says of itself, as it is written there. Nothing of it has been checked but its size and its digest. */
export type ReadBundle =
  | {
      readonly kind: "bundle";
      readonly format: BundleFormat;
      /** YAML: the decoded label of a classic bundle, or osbert.yaml. At most 1 MiB. */
      readonly text: string;
      /** Of a classic bundle: its runtime label. */
      readonly runtime: number | null;
      readonly artifact: Artifact;
    }
  /** It says that it is a bundle, and cannot be read as one: a label that is not base64, platforms that differ (F5-37). */
  | { readonly kind: "invalid"; readonly why: string }
  | { readonly kind: "not a bundle"; readonly why: string };

export type BundleFormat = "apb" | "osbert";

/** What a runner needs to run a bundle, for ever the same. `image`: something has to pull it. `files`: `fetch` puts them into a folder. */
export type Artifact =
  | {
      readonly kind: "image";
      /** With the host that it had when it was read. While its source is configured, that one says where it is now (F5-26). */
      readonly image: string;
      readonly digest: Digest;
      /** In its source. Missing: it lies somewhere else, and only its name is known. */
      readonly repository?: string;
      /** The first name of its source: set when it is run. */
      readonly source?: string;
    }
  | { readonly kind: "files"; readonly repository: string; readonly digest: Digest };

/**
 * A registry, or what serves as one. A source never says that something is gone because it could not be read: whatever goes wrong is
 * thrown as a SourceError, and only an answer that says so makes a ref absent. All calls are bounded in time, in bytes and in pages, and
 * end when the signal does.
 */
export interface Source {
  /** Pages of repositories. It ends without a throw only after the last page. */
  repositories(signal: AbortSignal): AsyncIterable<readonly string[]>;
  /** The tags of a repository. `null`: the source says that there is no such repository, or none in it. */
  tags(repository: string, signal: AbortSignal): Promise<readonly string[] | null>;
  /** The digest that a tag has now. `null`: the source says that there is none. */
  resolve(ref: Ref, signal: AbortSignal): Promise<Digest | null>;
  /** Whether a digest is still there, as cheaply as can be found out. Without it, `read` is asked. */
  has?(repository: string, digest: Digest, signal: AbortSignal): Promise<boolean>;
  /** What is at a digest. Every byte of it has been checked against it. What is not there (any more) is thrown as `not found`. */
  read(repository: string, digest: Digest, signal: AbortSignal): Promise<ReadBundle>;
  /**
   * Why what is at a digest must not be offered: it lacks the signature that the settings require (F5-38). `null`: it has it, or needs none.
   * Signatures that cannot be read say nothing, and are thrown. Without it, none is required.
   */
  signatureProblem?(repository: string, digest: Digest, signal: AbortSignal): Promise<string | null>;
  /**
   * Puts the files of an artifact of kind `files` into an empty folder; no name in it leads out of that. They are whole once it resolves:
   * whoever may be killed before that fetches beside the place and renames. After a throw the folder is empty again.
   */
  fetch(repository: string, digest: Digest, folder: string, signal: AbortSignal): Promise<void>;
  /** What the image in a repository is called by those who pull it: `registry.example:5000/team/postgres`. Without it, there are none. */
  imageOf?(repository: string): string;
  /** Puts an image, for the platform of this machine, into an empty folder as an OCI image layout; else as `fetch`. */
  fetchImage?(repository: string, digest: Digest, folder: string, signal: AbortSignal): Promise<void>;
  /** Whether it answers at all, as cheaply as can be found out. Throws a SourceError. */
  probe(signal: AbortSignal): Promise<void>;
}

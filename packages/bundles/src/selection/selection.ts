/**
 * What of a source is read: the repositories by their names, and of each some tags. Patterns are RE2's, which match in linear time
 * whatever they are and whatever is put before them.
 */
export interface Selection {
  /** What becomes of a repository that neither list names. */
  readonly default: "allow" | "deny";
  readonly allow: readonly NamePattern[];
  /** Counts more than `allow`. */
  readonly deny: readonly NamePattern[];
  /** Of every repository, unless `named` says `only`. */
  readonly tags: readonly TagRule[];
  readonly named: readonly NamedTags[];
}

export interface NamePattern {
  readonly pattern: string;
  /** `whole`: the pattern describes the whole name, as in Osbert's own settings. `part`: it is found in it, as the predecessor's are. */
  readonly match: "whole" | "part";
}

/** The channel is who a bundle is: its tag may change, its identity stays. `""` is the default one, which leaves no trace in an id (F5-66). */
export type TagRule =
  | { readonly kind: "tag"; readonly channel: string; readonly tag: string }
  /** The newest tag of a range of semantic versions (F5-69). */
  | { readonly kind: "range"; readonly channel: string; readonly range: string; readonly prereleases: boolean };

export interface NamedTags {
  /** A repository, or the last parts of its name: `postgres-apb` is `team/postgres-apb`, too. */
  readonly repository: string;
  readonly tags: readonly TagRule[];
  /** The tags for every repository do not count for this one (F5-67). */
  readonly only: boolean;
}

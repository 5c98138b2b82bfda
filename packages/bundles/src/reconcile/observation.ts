import type { BundleSpec, SpecProblem } from "../formats/bundle-spec.js";
import type { Artifact, Digest, Ref } from "../sources/source.js";

/** A revision of a bundle: what it was at a digest. It never changes. */
export interface Revision {
  readonly digest: Digest;
  readonly spec: BundleSpec;
  readonly artifact: Artifact;
  /** Of the code that read it: an older one never replaces what a newer one has read (F5-77). */
  readonly parserVersion: number;
}

/**
 * A bundle's place in its source. The channel is what an operator has asked for: `""` is the default tag, else it is the named tag or the
 * range of versions. The tag is what that leads to at present: it may change from reading to reading, and the spec stays the same one
 * (F5-27, 66, 69).
 */
export interface ChannelRef extends Ref {
  readonly channel: string;
}

/** What a ref was found to be. `same`: a digest that is known already, so nothing else was read. */
export type RefSeen =
  | { readonly kind: "same"; readonly digest: Digest }
  | { readonly kind: "read"; readonly revision: Revision }
  | { readonly kind: "absent" }
  | { readonly kind: "unreadable"; readonly why: string }
  | { readonly kind: "invalid"; readonly digest: Digest; readonly problems: readonly SpecProblem[] }
  /** F5-36: it can be read, and what runs bundles here cannot run it. Its digest stays the same when that can. */
  | { readonly kind: "unsupported"; readonly digest: Digest; readonly why: string }
  | { readonly kind: "not a bundle"; readonly digest: Digest; readonly why: string }
  /** F5-38: it lacks the signature that is required, and was not read. It may be given one later: its digest stays the same. */
  | { readonly kind: "unsigned"; readonly digest: Digest; readonly why: string }
  | { readonly kind: "filtered"; readonly why: string }
  /** A push that somebody has taken back, or whose time is over (F5-64): it goes at once, and nobody has to doubt it. */
  | { readonly kind: "removed"; readonly why: string };

/**
 * What one reading of a source has found. `complete`: the list was read to its last page, and every ref. `partial`: the list was, some
 * refs could not be. `failed`: the list was not; what was read of it may add and change, but nothing is missing because it is not in it.
 */
export interface Observation {
  /** Of the run that made it: a held removal is confirmed by it. */
  readonly id: string;
  /** The configuration that it was made with: what was made with another one is not taken in. */
  readonly generation: string;
  readonly completeness: "complete" | "partial" | "failed";
  /** By `specId`. One that is known and not in here was not listed. */
  readonly refs: ReadonlyMap<string, { readonly ref: ChannelRef; readonly seen: RefSeen }>;
  /** Why it failed, for a person. */
  readonly error: string | null;
  /** As the source asked. */
  readonly retryAfterMs: number | null;
  /** Of the code that has read it. */
  readonly parserVersion: number;
}

/** How far a reading is. `of` is `null` as long as the list of repositories is not read to its end: then `done` counts what was listed. */
export interface ReadingProgress {
  readonly done: number;
  readonly of: number | null;
}

/** The key of a spec inside its source. Neither repositories nor tags have a colon; the default channel carries none, so that naming further tags changes no id (F5-66). */
export function specId({ repository, channel }: Pick<ChannelRef, "repository" | "channel">): string {
  // F5-63: two forms of one letter are one name.
  return (channel === "" ? repository : `${repository}:${channel}`).normalize("NFC");
}

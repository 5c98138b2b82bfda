import type { Digest } from "../sources/source.js";
import type { ChannelRef } from "./observation.js";
import type { RefusedContent, SpecRecord, StoredSource } from "./records.js";

/**
 * Digests of a spec that need not be read again: what it is now, and what was refused of it by a parser that is no older (F5-77), and has
 * not been confirmed since. Of what was deleted nothing is kept, so all of it is read.
 */
export function knownDigests(record: SpecRecord, parserVersion: number): readonly Digest[] {
  if (record.kind === "deleted") return [];
  if (record.kind === "candidate") {
    const { because } = record;
    const isKnown = because.kind === "refused content" && because.parserVersion >= parserVersion;
    return isKnown && !mayPass(because) ? [because.digest] : [];
  }
  const { current, refused, confirmed } = record;
  const again = refused === null || refused.parserVersion < parserVersion || refused.digest === confirmed;
  return again || mayPass(refused) ? [current.digest] : [current.digest, refused.digest];
}

/** Plans lose their instances, and content is signed, without another digest: what waits for that is looked at each time. */
function mayPass({ code }: RefusedContent): boolean {
  return code === "plans in use" || code === "signature";
}

/** What a reading has to know of what is kept: which refs there were, and what need not be read of them again. */
export interface KnownRef {
  readonly ref: ChannelRef;
  readonly digests: readonly Digest[];
}

export function knownRefs({ specs }: StoredSource, parserVersion: number): ReadonlyMap<string, KnownRef> {
  const known = new Map<string, KnownRef>();
  for (const [spec, record] of specs)
    if (record.kind !== "deleted") known.set(spec, { ref: record.ref, digests: knownDigests(record, parserVersion) });
  return known;
}

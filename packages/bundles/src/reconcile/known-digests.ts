import type { Digest } from "../sources/source.js";
import type { ChannelRef } from "./observation.js";
import type { RefusedContent, SpecRecord, StoredSource } from "./records.js";

/** Who reads now: whether what another one has refused is to be read again. */
export interface KnowingReader {
  readonly parserVersion: number;
  /** What runs bundles can run classic ones of runtime 2. Default false. */
  readonly runsRuntime2?: boolean;
}

/**
 * Digests of a spec that need not be read again: what it is now, and what was refused of it by a parser that is no older (F5-77), and has
 * not been confirmed since. Of what was deleted nothing is kept, so all of it is read.
 */
export function knownDigests(record: SpecRecord, reader: KnowingReader): readonly Digest[] {
  const { parserVersion } = reader;
  if (record.kind === "deleted") return [];
  if (record.kind === "candidate") {
    const { because } = record;
    const isKnown = because.kind === "refused content" && because.parserVersion >= parserVersion;
    return isKnown && !mayPass(because, reader) ? [because.digest] : [];
  }
  const { current, refused, confirmed } = record;
  const again = refused === null || refused.parserVersion < parserVersion || refused.digest === confirmed;
  return again || mayPass(refused, reader) ? [current.digest] : [current.digest, refused.digest];
}

/** Plans lose their instances, content is signed and runners are exchanged without another digest: what waits for that is looked at each time. */
function mayPass({ code }: RefusedContent, { runsRuntime2 = false }: KnowingReader): boolean {
  return code === "plans in use" || code === "signature" || (code === "runtime" && runsRuntime2);
}

/** A source of which some services are known as those that were deleted are: nothing of them is kept, so all of it is read. */
export function asDeleted(source: StoredSource, unstored: ReadonlySet<string>): StoredSource {
  if (unstored.size === 0) return source;
  const specs = new Map(source.specs);
  for (const spec of unstored) {
    const record = specs.get(spec);
    if (record?.kind !== "service") continue;
    const { ref, serviceId, idFrom, knownPlans, current } = record;
    specs.set(spec, { kind: "deleted", ref, serviceId, idFrom, knownPlans, deletedAt: current.at });
  }
  return { ...source, specs };
}

/** What a reading has to know of what is kept: which refs there were, and what need not be read of them again. */
export interface KnownRef {
  readonly ref: ChannelRef;
  readonly digests: readonly Digest[];
}

/** By `specId`. Told when it is asked: of thousands, each reading would make a copy. */
export interface KnownRefs extends Iterable<readonly [string, KnownRef]> {
  get(spec: string): KnownRef | undefined;
  readonly size: number;
}

export function knownRefs({ specs }: StoredSource, reader: KnowingReader): KnownRefs {
  const knownRef = (record: SpecRecord | undefined): KnownRef | undefined =>
    record === undefined || record.kind === "deleted"
      ? undefined
      : { ref: record.ref, digests: knownDigests(record, reader) };
  return {
    get: (spec) => knownRef(specs.get(spec)),
    get size() {
      let size = 0;
      for (const record of specs.values()) if (record.kind !== "deleted") size += 1;
      return size;
    },
    *[Symbol.iterator]() {
      for (const [spec, record] of specs) {
        const known = knownRef(record);
        if (known !== undefined) yield [spec, known] as const;
      }
    },
  };
}

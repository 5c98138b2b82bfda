import type { Journal } from "@osbert/journal";
import {
  type RevisionPart,
  type RevisionRecord,
  revisionPart,
  revisionPrefix,
  type SourceData,
  sourceKey,
  specPart,
} from "../reconcile/records.js";
import type { Digest } from "../sources/source.js";
import { sourceResource } from "./source-resource.js";

const sourcesAtOnce = 100;
const revisionsAtOnce = 200;

/** All sources that the journal keeps something of: also those that left the configuration, and those that only other processes have. */
export async function keptSources(journal: Journal): Promise<readonly SourceData[]> {
  const kept: SourceData[] = [];
  for (let after: string | undefined; ; ) {
    const query = { prefix: sourceKey(""), limit: sourcesAtOnce, ...(after !== undefined && { after }) };
    const { items, next } = await journal.find(query);
    kept.push(...items.map((resource) => sourceResource.resource(resource).data));
    if (next === null) return kept;
    after = next;
  }
}

/** All revisions that are kept of a source, some at a time. */
export async function* keptRevisions(
  journal: Journal,
  key: string,
): AsyncGenerator<{ readonly id: RevisionPart; readonly value: RevisionRecord }, void> {
  for (let after: string | undefined; ; ) {
    const range = { limit: revisionsAtOnce, ...(after !== undefined && { after }) };
    const page = sourceResource.partsUnder(revisionPrefix, await journal.parts(key, revisionPrefix, range));
    yield* page.items;
    if (page.next === null) return;
    after = page.next;
  }
}

/** Those of some revisions of a source that are kept. They never change. */
export async function readRevisions(
  journal: Journal,
  key: string,
  parts: readonly RevisionPart[],
): Promise<ReadonlyMap<RevisionPart, RevisionRecord>> {
  const stored = sourceResource.resource(await journal.read(key, parts));
  return new Map(
    parts.flatMap((part) => {
      const record = stored?.parts.get(part);
      return record === undefined ? [] : [[part, record] as const];
    }),
  );
}

/** A revision, and whether its spec names it as the current one, as both are at one moment. */
export async function readNamed(
  journal: Journal,
  key: string,
  spec: string,
  digest: Digest,
): Promise<{ readonly isNamed: boolean; readonly revision: RevisionRecord | undefined }> {
  const part = revisionPart(spec, digest);
  const stored = sourceResource.resource(await journal.read(key, [specPart(spec), part]));
  const record = stored?.parts.get(specPart(spec));
  return { isNamed: record?.kind === "service" && record.current.digest === digest, revision: stored?.parts.get(part) };
}

/**
 * Reads revisions of a source whose parts follow each other in the order of the store, some at a time. Behind those that were read last the store
 * is walked, instead of looking each up; those that the walk has not met are looked up. Where it met more that nobody
 * wanted, as of bundles with a long history, no more walks are made.
 */
export function neighbouringRevisions(
  journal: Journal,
  key: string,
): (parts: readonly RevisionPart[]) => Promise<ReadonlyMap<RevisionPart, RevisionRecord>> {
  let after: RevisionPart | undefined;
  let walks = true;
  const walk = async (parts: readonly RevisionPart[]) => {
    if (!walks || after === undefined) return [];
    const range = { after, limit: parts.length };
    const wanted = new Set(parts);
    const page = sourceResource.partsUnder(revisionPrefix, await journal.parts(key, revisionPrefix, range));
    const met = page.items.filter(({ id }) => wanted.has(id));
    walks = 2 * met.length >= parts.length;
    return met;
  };
  return async (parts) => {
    const met = new Map((await walk(parts)).map(({ id, value }) => [id, value]));
    const others = parts.filter((part) => !met.has(part));
    after = parts.at(-1);
    return others.length === 0 ? met : new Map([...met, ...(await readRevisions(journal, key, others))]);
  };
}

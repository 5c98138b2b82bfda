import type { Attribution, Journal, TypedOperationChange, TypedResource } from "@osbert/journal";
import {
  isSameRank,
  type RevisionPart,
  type RevisionRecord,
  revisionPart,
  revisionPrefix,
  type SourceData,
  type SpecPart,
  type SpecRecord,
  type StoredSource,
  specOfRevision,
  specPart,
  specPrefix,
} from "../reconcile/records.js";
import { changesCatalog, countsAfter, type SourceChange } from "../reconcile/source-change.js";
import type { SourceCopy } from "./source-copy.js";
import { type ChangedEntry, changedKind, mostEvents, type SourceShape, sourceResource } from "./source-resource.js";

type Change = TypedOperationChange<SourceShape>;

/** One commit on the source's resource: by its operation, under its lease, or by a person. */
export type WriteSource = (
  decide: (resource: TypedResource<SourceShape>) => Change,
  parts: readonly string[],
) => Promise<void>;

/** Commits of whoever asks, without an operation's lease. Of a source that is not there, nothing is written. */
export function writeAs(journal: Journal, key: string, by: Attribution): WriteSource {
  return async (decide, parts) => {
    const decision = sourceResource.decide((resource) =>
      resource === undefined ? { result: null } : { result: null, change: decide(resource) },
    );
    await journal.transact(key, decision, { by, parts });
  };
}

/** Others have changed the source between the look at it and the commit: what was decided is decided again. */
class Overtaken extends Error {
  override readonly name = "Overtaken";
}

const mostTries = 20;
/** Of one commit. */
const mostParts = 200;
const mostBytes = 2_097_152;

/**
 * Decides on what is stored of a source and writes what comes of it. A decision is about thousands of specs, and a commit about some: so
 * each commit is held to what its specs, and the source's data, were when it was decided, and if they are something else by now, all of
 * it is decided anew.
 *
 * The order of effects: specs, some at a time, each of which means the same with or without the others, and each in one commit with the
 * new revision that it names: alone, that would look like one that nothing refers to, and be collected. With each go their own events, the
 * counts and the snapshot's number, so that these are true of what is stored at every moment; with the last of them the rest of the data,
 * such as that the source was read. Revisions that no spec names any more go after these, and only while their specs are what they were
 * decided to be. Killed in between: the next run decides on what is there, and comes to the rest. `null`: nothing is to be written. Answers
 * what was.
 */
export async function writeSource(
  copy: SourceCopy,
  write: WriteSource,
  decide: (stored: StoredSource) => Promise<SourceChange> | SourceChange | null,
): Promise<SourceChange | undefined> {
  for (let tries = 1; ; tries++) {
    const stored = await copy.refresh();
    if (stored === undefined) return undefined;
    const change = await decide(stored);
    if (change === null || (change.quiet && !isDue(stored.data, change.data))) return undefined;
    try {
      for (const bite of bites(stored, change))
        await write((resource) => checked(resource, bite), [...bite.expects.keys()]);
      await copy.refresh();
      return change;
    } catch (error) {
      if (!(error instanceof Overtaken) || tries >= mostTries) throw error;
    }
  }
}

/**
 * What a run has seen of a source's health is written along with what it changes, and else once in a while (F5-80). Failures in a row, and
 * readings that say the same of a held removal, are counted at once: others depend on their number, and they come further and further apart.
 * So is a source's rank: the catalog is made by it.
 */
const healthEveryMs = 3_600_000;

function isDue(stored: SourceData, next: SourceData): boolean {
  if (next.health.consecutiveFailures !== stored.health.consecutiveFailures) return true;
  if (next.guard?.times !== stored.guard?.times) return true;
  if (!isSameRank(next.rank, stored.rank)) return true;
  return (next.health.lastRunAt ?? 0) - (stored.health.lastRunAt ?? 0) >= healthEveryMs;
}

interface Bite {
  /** What the source's data have to be. */
  readonly after: SourceData;
  /** The specs that the commit is held to. */
  readonly expects: ReadonlyMap<SpecPart, SpecRecord | undefined>;
  readonly change: Change;
}

function checked(resource: TypedResource<SourceShape>, { after, expects, change }: Bite): Change {
  if (!isSame(resource.data, after)) throw new Overtaken("the source's data");
  for (const [part, record] of expects) if (!isSame(resource.parts.get(part), record)) throw new Overtaken(part);
  return change;
}

/** Both were read from, or written to, the same text. */
function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** Made one after the other, as they are written: of thousands of revisions, those of one commit are in memory. */
function* bites(stored: StoredSource, change: SourceChange): Generator<Bite> {
  const { data: last, specs, events } = change;
  const untold = new Set(events);
  let after = stored.data;
  for (const { parts, isLast } of inBites(groupsOf(change))) {
    const expects = expectedSpecs(Object.keys(parts), stored, specs);
    const ids = new Set(specIds(Object.keys(parts)));
    const changed = new Map([...ids].map((id) => [id, specs.get(id) ?? null]));
    const whole = isLast ? last : stored.data;
    const data = {
      ...whole,
      snapshot: after.snapshot + (changesCatalog(stored, whole, changed) ? 1 : 0),
      counts: countsAfter(after.counts, stored.specs, changed),
    };
    const told = isLast ? [...untold] : events.filter(({ spec }) => spec !== null && ids.has(spec));
    for (const event of told) untold.delete(event);
    const entry: ChangedEntry = {
      ...{ snapshot: data.snapshot, specs: [...ids] },
      ...{ events: told.slice(0, mostEvents), eventCount: told.length },
    };
    const payload = JSON.parse(JSON.stringify(entry));
    yield { after, expects, change: { parts, data, entries: [{ kind: changedKind, payload }] } };
    after = data;
  }
}

type Parts = NonNullable<Change["parts"]>;
type Part = readonly [string, RevisionRecord | SpecRecord | null];

/** What is written in one commit, or not at all: a spec with the revision that it names; each revision that nothing names. At least one, if only of nothing. */
function* groupsOf({ specs, revisions }: SourceChange): Generator<readonly Part[]> {
  const named = new Set<RevisionPart>();
  for (const [id, record] of specs) {
    const part = record?.kind === "service" ? revisionPart(id, record.current.digest) : null;
    const revision = part === null ? undefined : revisions.get(part);
    if (part === null || revision === undefined) yield [[specPart(id), record]];
    else {
      named.add(part);
      yield [
        [part, revision],
        [specPart(id), record],
      ];
    }
  }
  for (const part of revisions.keys()) if (!named.has(part)) yield [[part, revisions.get(part) ?? null]];
  // The last commit is there also where no spec changes.
  if (specs.size === 0 && revisions.size === 0) yield [];
}

/** What a commit of these parts is held to: specs that it changes are as they were, and those of its revisions as they were decided to be. */
function expectedSpecs(
  parts: readonly string[],
  stored: StoredSource,
  changed: SourceChange["specs"],
): Bite["expects"] {
  const expects = new Map<SpecPart, SpecRecord | undefined>();
  for (const id of specIds(parts)) expects.set(specPart(id), stored.specs.get(id));
  for (const part of parts) {
    if (!part.startsWith(revisionPrefix)) continue;
    const id = specOfRevision(part as RevisionPart);
    if (expects.has(specPart(id))) continue;
    expects.set(specPart(id), changed.has(id) ? (changed.get(id) ?? undefined) : stored.specs.get(id));
  }
  return expects;
}

function specIds(parts: readonly string[]): readonly string[] {
  return parts.filter((part) => part.startsWith(specPrefix)).map((part) => part.slice(specPrefix.length));
}

/** Of groups, none of which is torn. */
function* inBites(groups: Iterable<readonly Part[]>): Generator<{ readonly parts: Parts; readonly isLast: boolean }> {
  let bite: Record<string, Part[1]> | null = null;
  let bytes = 0;
  let count = 0;
  for (const group of groups) {
    const size = group.reduce((sum, [, value]) => sum + (value === null ? 0 : JSON.stringify(value).length), 0);
    if (bite !== null && (count + group.length > mostParts || bytes + size > mostBytes)) {
      yield { parts: bite as Parts, isLast: false };
      bite = null;
      bytes = 0;
      count = 0;
    }
    bite ??= {};
    for (const [id, value] of group) bite[id] = value;
    bytes += size;
    count += group.length;
  }
  if (bite !== null) yield { parts: bite as Parts, isLast: true };
}

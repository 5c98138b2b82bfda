import type { Attribution, Journal, TypedOperationChange, TypedResource } from "@osbert/journal";
import {
  type RevisionPart,
  type RevisionRecord,
  type SourceData,
  type SpecRecord,
  type StoredSource,
  specPart,
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
 * The order of effects: first new revisions, which nothing refers to yet; then specs, some at a time, each of which means the same with or
 * without the others. With each go their own events, the counts and the snapshot's number, so that these are true of what is stored at every
 * moment; with the last of them the rest of the data, such as that the source was read. Killed in between: the next run decides on what is
 * there, and comes to the rest. `null`: nothing is to be written. Answers what was.
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
        await write((resource) => checked(resource, stored, bite), bite.expects);
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
 */
const healthEveryMs = 3_600_000;

function isDue(stored: SourceData, next: SourceData): boolean {
  if (next.health.consecutiveFailures !== stored.health.consecutiveFailures) return true;
  if (next.guard?.times !== stored.guard?.times) return true;
  return (next.health.lastRunAt ?? 0) - (stored.health.lastRunAt ?? 0) >= healthEveryMs;
}

interface Bite {
  /** What the source's data have to be. */
  readonly after: SourceData;
  /** The parts that the commit is held to. */
  readonly expects: readonly string[];
  readonly change: Change;
}

function checked(resource: TypedResource<SourceShape>, stored: StoredSource, { after, expects, change }: Bite): Change {
  if (!isSame(resource.data, after)) throw new Overtaken("the source's data");
  for (const part of expects) {
    const now = resource.parts.get(part as `spec/${string}`);
    if (!isSame(now, stored.specs.get(part.slice(specPart("").length)))) throw new Overtaken(part);
  }
  return change;
}

/** Both were read from, or written to, the same text. */
function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** Made one after the other, as they are written: of thousands of revisions, those of one commit are in memory. */
function* bites(stored: StoredSource, { data: last, specs, revisions, events }: SourceChange): Generator<Bite> {
  const removed: (readonly [RevisionPart, null])[] = [];
  for (const { parts } of inBites(added(revisions, removed)))
    yield { after: stored.data, expects: [], change: { parts } };
  const untold = new Set(events);
  let after = stored.data;
  for (const { parts, isLast } of inBites(specParts(specs, removed))) {
    const expects = Object.keys(parts).filter((id) => id.startsWith(specPart("")));
    const ids = new Set(expects.map((id) => id.slice(specPart("").length)));
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

/** Those to add. Those to remove are put aside: they go when nothing refers to them. */
function* added(revisions: SourceChange["revisions"], removed: (readonly [RevisionPart, null])[]): Generator<Part> {
  for (const [part, record] of revisions) {
    if (record !== null) yield [part, record];
    else removed.push([part, null]);
  }
}

function* specParts(specs: SourceChange["specs"], removed: readonly Part[]): Generator<Part | null> {
  for (const [id, record] of specs) yield [specPart(id), record];
  yield* removed;
  // The last commit is there also where no spec changes.
  if (specs.size === 0 && removed.length === 0) yield null;
}

/** `null` is a part of nothing. */
function* inBites(parts: Iterable<Part | null>): Generator<{ readonly parts: Parts; readonly isLast: boolean }> {
  let group: Record<string, Part[1]> | null = null;
  let bytes = 0;
  let count = 0;
  for (const part of parts) {
    const size = part === null || part[1] === null ? 0 : JSON.stringify(part[1]).length;
    if (group !== null && (count >= mostParts || bytes + size > mostBytes)) {
      yield { parts: group as Parts, isLast: false };
      group = null;
      bytes = 0;
      count = 0;
    }
    group ??= {};
    if (part !== null) group[part[0]] = part[1];
    bytes += size;
    count++;
  }
  if (group !== null) yield { parts: group as Parts, isLast: true };
}

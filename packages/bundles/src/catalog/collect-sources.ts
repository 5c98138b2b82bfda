import { type ServiceUse, serviceUse } from "@osbert/broker";
import { defineResource, type Journal, RetryLater, type TypedKind } from "@osbert/journal";
import {
  type CollectedSource,
  type Collection,
  type CollectRules,
  collect,
  collectable,
  type Use,
} from "../reconcile/collect.js";
import {
  digestOfRevision,
  type RevisionPart,
  revisionPart,
  type StoredSource,
  specOfRevision,
} from "../reconcile/records.js";
import type { SourceChange } from "../reconcile/source-change.js";
import { hasInstances } from "./in-use.js";
import { keptRevisions } from "./kept-sources.js";
import type { SourceCopy } from "./source-copy.js";
import { byItself, sourceResource } from "./source-resource.js";
import { type WriteSource, writeSource } from "./write-source.js";

export const collectKind = "bundles.collect";
const collectionKey = "bundles.collection";

/** The one resource whose operation collects, for all sources. */
interface CollectionShape {
  readonly data: null;
  readonly parts: Readonly<Record<string, never>>;
  readonly operations: { readonly [collectKind]: { readonly input: null; readonly result: null } };
}

export const collectionResource = defineResource<CollectionShape>();

export interface CollectPorts {
  readonly journal: () => Journal;
  /** All sources that something is kept of. */
  readonly copies: () => readonly SourceCopy[];
  readonly write: (key: string) => WriteSource;
  readonly rules: CollectRules;
  readonly intervalMs: number;
  /** Only finds out what would go. */
  readonly dryRun: boolean;
  /** Removes what was pushed and nothing refers to, in every pass that removes anything. */
  readonly sweepPushed: () => Promise<void>;
  /** Told of every pass over a source that found something. */
  readonly collected: (source: string, collection: Collection) => void;
  readonly changed: (key: string, change: SourceChange) => void;
}

/** Revisions that no spec knows of are looked for in every so many passes: all that is kept has to be read for that. */
const walkEvery = 288;

/**
 * The operation that removes what nothing refers to (F5-53). One process does it; one that comes late does no harm, because what it
 * decides is held to what is stored when it is written.
 */
export function collectOperation(ports: CollectPorts): TypedKind<CollectionShape, typeof collectKind> {
  // The first one is when a process has just started, and has enough to do with what it reads for the catalog: the second one walks.
  let pass = walkEvery - 1;
  return {
    deadlineMs: null,
    run: (operation) =>
      operation.poll(
        "pass",
        async () => {
          const failures: string[] = [];
          for (const copy of ports.copies()) {
            try {
              await collectSource(ports, copy, { pass, dryRun: ports.dryRun });
            } catch (error) {
              // A source that cannot be collected keeps what it has, and no other from being collected.
              failures.push(`${copy.key}: ${error instanceof Error ? error.message : String(error)}`);
            }
          }
          if (!ports.dryRun)
            await ports.sweepPushed().catch((error: unknown) => {
              failures.push(`what was pushed: ${error instanceof Error ? error.message : String(error)}`);
            });
          pass += 1;
          const why = failures.length === 0 ? "until the next pass" : `not collected: ${failures.join("; ")}`;
          throw new RetryLater(why.slice(0, 1_000), { afterMs: ports.intervalMs });
        },
        { everyMs: ports.intervalMs },
      ),
  };
}

/** There is an operation that collects. Its first pass is at once, and its others are when they are due, whichever process starts. */
export async function askForCollection(journal: Journal, next: "now" | "when due"): Promise<void> {
  const decide = collectionResource.decide((resource) => {
    const open = resource?.open.filter(({ kind }) => kind === collectKind).map(({ id }) => id) ?? [];
    if (open.length === 0)
      return { result: null, change: { data: null, accept: [{ kind: collectKind, input: null }] } };
    return next === "now" ? { result: null, change: { hurry: open } } : { result: null };
  });
  await journal.transact(collectionKey, decide, { by: byItself });
}

/** One pass over a source. `undefined`: there is no such source, or nothing of it is old enough. */
export async function collectSource(
  ports: Pick<CollectPorts, "journal" | "write" | "rules" | "collected" | "changed">,
  copy: SourceCopy,
  { pass, dryRun }: { readonly pass: number; readonly dryRun: boolean },
): Promise<Collection | undefined> {
  const { rules } = ports;
  const journal = ports.journal();
  const now = journal.now();
  let collection: Collection | undefined;
  let lookedAt = now;
  const decide = async (stored: StoredSource) => {
    lookedAt = journal.now();
    const revisions = pass % walkEvery === 0 ? await allRevisions(journal, copy.key) : namedRevisions(stored);
    const source: CollectedSource = { ...stored, revisions };
    const asked = collectable(source, rules, now, pass);
    const use = {
      services: await useOfServices(journal, asked.services),
      revisions: await useOfRevisions(journal, copy.key, source, asked.revisions),
    };
    collection = collect(source, use, rules, now);
    return collection.change;
  };
  if (dryRun) {
    const stored = await copy.refresh();
    if (stored !== undefined) await decide(stored);
  } else {
    const write = lookedAtSoon(journal, ports.write(copy.key), () => lookedAt);
    const change = await writeSource(copy, write, decide);
    if (change !== undefined) ports.changed(copy.key, change);
  }
  if (collection === undefined) return undefined;
  const { deleted, revisions, forgotten, kept } = collection;
  if (deleted.length + revisions.length + forgotten.length + kept.length === 0) return undefined;
  ports.collected(copy.stored?.data.name ?? copy.key, collection);
  return collection;
}

/**
 * Between the look for instances and the commit there are moments. A process that stood still in between, for so long that an instance may
 * have come which it did not see, looks again in the next pass (F5-48).
 */
function lookedAtSoon(journal: Journal, write: WriteSource, lookedAt: () => number): WriteSource {
  return (decide, parts) =>
    write((resource) => {
      if (journal.now() - lookedAt() > longestLookMs) throw new Error("it took too long to find out what is used");
      return decide(resource);
    }, parts);
}

const longestLookMs = 120_000;

/** Of what the specs know: without a look at the store. None was read later than it became current. */
function namedRevisions({ specs }: StoredSource): CollectedSource["revisions"] {
  const found = new Map<RevisionPart, number>();
  for (const [spec, record] of specs) {
    if (record.kind !== "service") continue;
    for (const { digest, at } of [record.current, ...record.history]) found.set(revisionPart(spec, digest), at);
  }
  return found;
}

async function allRevisions(journal: Journal, key: string): Promise<CollectedSource["revisions"]> {
  const found = new Map<RevisionPart, number>();
  for await (const { id, value } of keptRevisions(journal, key)) found.set(id, value.readAt);
  return found;
}

/** One look each: whatever phase an instance is in, and whether it can be read or not, it is one (F5-54, 55). */
async function useOfServices(journal: Journal, services: readonly string[]): Promise<ReadonlyMap<string, Use>> {
  const use = new Map<string, Use>();
  for (const id of services) use.set(id, (await hasInstances(journal, "service", id)) ? "used" : "unused");
  return use;
}

async function useOfRevisions(
  journal: Journal,
  key: string,
  { specs }: StoredSource,
  revisions: readonly RevisionPart[],
): Promise<ReadonlyMap<RevisionPart, Use>> {
  const use = new Map<RevisionPart, Use>();
  const services = new Map<string, ServiceUse>();
  for (const part of revisions) {
    const record = specs.get(specOfRevision(part));
    const id =
      record === undefined || record.kind === "candidate"
        ? sourceResource.resource(await journal.read(key, [part]))?.parts.get(part)?.serviceId
        : record.serviceId;
    if (id === undefined) continue;
    const found = services.get(id) ?? (await serviceUse(journal, id));
    services.set(id, found);
    const isUsed = found.revisions.has(digestOfRevision(part));
    use.set(part, isUsed ? "used" : found.isUncertain ? "unknown" : "unused");
  }
  return use;
}

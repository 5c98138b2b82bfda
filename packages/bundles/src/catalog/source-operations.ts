import type { Journal, OperationKinds } from "@osbert/journal";
import { type Collection, type CollectRules, defaultCollectRules } from "../reconcile/collect.js";
import type { BundleEvent } from "../watch/bundle-event.js";
import { type BundleServicesOptions, defaultCollection } from "./bundle-services-options.js";
import {
  type CollectPorts,
  collectionResource,
  collectKind,
  collectOperation,
  collectSource,
} from "./collect-sources.js";
import type { ConfiguredSources } from "./configured-sources.js";
import { type FollowPorts, followOperation } from "./follow-source.js";
import type { SourceCopies } from "./source-copies.js";
import type { SourceReadings } from "./source-readings.js";
import { byItself, followKind, sourceResource } from "./source-resource.js";
import { sweepPushed } from "./sweep-pushed.js";
import type { TellSources } from "./tell-sources.js";
import { writeAs } from "./write-source.js";

export interface SourceOperationsPorts {
  readonly journal: () => Journal;
  readonly options: Pick<BundleServicesOptions, "collection" | "pushed">;
  readonly configured: ConfiguredSources;
  readonly copies: SourceCopies;
  readonly readings: SourceReadings;
  readonly tell: (event: BundleEvent) => void;
  readonly tellSources: TellSources;
  readonly unstored: FollowPorts["unstored"];
}

export interface SourceOperations {
  readonly kinds: OperationKinds;
  readonly collectRules: CollectRules;
  /** What the next pass of collection would do with each source. Nothing is written. */
  collectable(): Promise<ReadonlyMap<string, Collection>>;
}

/** What the journal runs for sources, in one process of all: an operation that follows each, and one that collects. */
export function sourceOperations(ports: SourceOperationsPorts): SourceOperations {
  const { journal, configured, copies, readings, tellSources } = ports;
  const follow = followOperation({
    ...{ journal, readings, random: Math.random },
    source: (key) => configured.get(key),
    claim: (key) => configured.claim(key),
    disclaim: (key) => configured.disclaim(key),
    copy: (key) => copies.get(key),
    unstored: ports.unstored,
    reading: tellSources.reading,
    read: tellSources.read,
    changed: (key, change) => tellSources.changed(key, change, "a reading"),
  });
  const collecting = collectPorts(ports);
  return {
    kinds: {
      ...sourceResource.kinds({ [followKind]: follow }),
      ...collectionResource.kinds({ [collectKind]: collectOperation(collecting) }),
    },
    collectRules: collecting.rules,
    async collectable() {
      const found = new Map<string, Collection>();
      const collected = (source: string, collection: Collection) => void found.set(source, collection);
      for (const copy of copies.all())
        await collectSource({ ...collecting, collected }, copy, { pass: 0, dryRun: true });
      return found;
    },
  };
}

function collectPorts({ journal, options, copies, tell, tellSources }: SourceOperationsPorts): CollectPorts {
  const { collection = {}, pushed } = options;
  const { intervalMs = defaultCollection.intervalMs, dryRun = defaultCollection.dryRun } = collection;
  return {
    ...{ journal, intervalMs, dryRun, rules: { ...defaultCollectRules, ...collection } },
    copies: () => copies.all(),
    write: (key) => writeAs(journal(), key, byItself),
    collected: (source, found) => tell({ kind: "source collected", source, collection: found, dryRun }),
    changed: (key, change) => tellSources.changed(key, change, "collection"),
    sweepPushed: async () => pushed && sweepPushed(journal(), pushed),
  };
}

import type { CatalogEntry } from "../reconcile/merge-sources.js";
import type { Observation, ReadingProgress } from "../reconcile/observation.js";
import { refusedContents, type StoredSource, sourceKey } from "../reconcile/records.js";
import type { SourceChange } from "../reconcile/source-change.js";
import type { BundleEvent } from "../watch/bundle-event.js";
import type { SourceCopy } from "./source-copy.js";

export interface TellSourcesPorts {
  readonly tell: (event: BundleEvent) => void;
  readonly nameOf: (key: string) => string;
  readonly stored: (key: string) => StoredSource | undefined;
  readonly now: () => number;
}

/** Tells whoever observes what happens to sources, by the names that they have now. */
export interface TellSources {
  readonly known: (copies: readonly SourceCopy[]) => void;
  readonly reading: (key: string, progress: ReadingProgress) => void;
  readonly read: (key: string, observation: Observation, tookMs: number) => void;
  /** Nothing, if the change has no events. */
  readonly changed: (key: string, change: SourceChange, by: string) => void;
  readonly leftOut: (entry: CatalogEntry) => void;
  readonly notTakenIn: (key: string, error: unknown) => void;
}

export function tellSources({ tell, nameOf, stored, now }: TellSourcesPorts): TellSources {
  return {
    known(copies) {
      const sources = copies.flatMap((copy) =>
        copy.stored === undefined ? [] : [{ data: copy.stored.data, snapshotAt: copy.snapshotAt }],
      );
      tell({ kind: "sources known", sources });
    },
    reading: (key, progress) => tell({ kind: "source reading", source: nameOf(key), ...progress }),
    read(key, observation, tookMs) {
      const refused = refusedContents(stored(key));
      tell({ kind: "source read", source: nameOf(key), observation, refused, at: now(), tookMs });
    },
    changed(key, { events }, by) {
      if (events.length > 0) tell({ kind: "source changed", source: nameOf(key), by, events });
    },
    leftOut({ source, spec, serviceId, current: { digest } }) {
      tell({ kind: "bundle left out", source: nameOf(sourceKey(source)), spec, serviceId, digest });
    },
    notTakenIn(key, error) {
      const why = error instanceof Error ? error.message : String(error);
      tell({ kind: "source not taken in", source: nameOf(key), why });
    },
  };
}

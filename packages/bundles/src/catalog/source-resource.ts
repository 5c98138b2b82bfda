import { type Attribution, defineResource } from "@osbert/journal";
import type { ReconcileEvent } from "../reconcile/reconcile-event.js";
import type { RevisionPart, RevisionRecord, SourceData, SpecPart, SpecRecord } from "../reconcile/records.js";

/**
 * What the resource of a source is made of. Its one operation reads the source again and again, for a day; then another one goes on, for as long as
 * there is the source.
 */
export interface SourceShape {
  readonly data: SourceData;
  readonly parts: {
    readonly [spec: SpecPart]: SpecRecord;
    readonly [revision: RevisionPart]: RevisionRecord;
  };
  readonly operations: { readonly [followKind]: { readonly input: Relief | null; readonly result: Relief | null } };
}

/** What one operation leaves to the next. `null`: it is the first one, or nothing is left to follow. */
export interface Relief {
  /** The reading that was due, and that the next one begins with: somebody may be waiting for it. */
  readonly reading: string;
}

export const followKind = "bundles.follow";

export const sourceResource = defineResource<SourceShape>();

/** Who has done what no person asked for. */
export const byItself: Attribution = { actor: { type: "system", subject: "bundles" } };

/** Entries of this kind say which specs a commit has changed: who has a copy of them reads these anew. */
export const changedKind = "bundles.changed";

export interface ChangedEntry {
  readonly snapshot: number;
  /** Ids of the specs that the commit has changed. */
  readonly specs: readonly string[];
  /** What has happened to them, and with the last commit of a change the rest; the first `mostEvents` of it. */
  readonly events: readonly ReconcileEvent[];
  /** How many events there were. */
  readonly eventCount: number;
}

export const mostEvents = 500;

import type { Observe } from "@osbert/server/observe";
import type { Action } from "../formats/bundle-spec.js";
import type { Collection } from "../reconcile/collect.js";
import type { Observation, ReadingProgress } from "../reconcile/observation.js";
import type { ReconcileEvent } from "../reconcile/reconcile-event.js";
import type { RefusedContent, SourceData } from "../reconcile/records.js";
import type { ActionEnd } from "../runners/action-output.js";
import type { JobState } from "../runners/runner.js";

/**
 * Everything about bundles that is worth telling, in one union, beside the events of the broker. Adapters turn it into logs and metrics.
 * Nothing here carries parameters, credentials, state or output of a bundle. But for `sources known`, `bundle left out` and `source not taken in`, each is told by
 * the one process that did it: what is told in all of them together was told once.
 */
export type BundleEvent =
  | SourceReading
  | SourceRead
  | SourceChanged
  | SourcesKnown
  | BundleLeftOut
  | SourceNotTakenIn
  | SourceCollected
  | JobWatched
  | JobLeft
  | JobEnded;

/** Told of everything, at once. What it throws is swallowed. */
export type BundleObserver = Observe<BundleEvent>;

/** A reading that takes long is at work, and how far it is: told every few seconds. */
export interface SourceReading extends ReadingProgress {
  readonly kind: "source reading";
  readonly source: string;
}

/** A source was read, also to no avail, and what came of it was committed, if anything did. */
export interface SourceRead {
  readonly kind: "source read";
  readonly source: string;
  readonly observation: Observation;
  /** What is known of it and cannot be offered, by specs: it was not read again. */
  readonly refused: ReadonlyMap<string, RefusedContent>;
  /** By the store's clock. */
  readonly at: number;
  readonly tookMs: number;
}

/** A reading, a person or collection has changed what is kept of a source: committed by this process. */
export interface SourceChanged {
  readonly kind: "source changed";
  readonly source: string;
  /** Who has decided it. */
  readonly by: string;
  readonly events: readonly ReconcileEvent[];
}

/** What is kept of all sources, whenever that has changed: told by every process. */
export interface SourcesKnown {
  readonly kind: "sources known";
  readonly sources: readonly KnownSource[];
}

export interface KnownSource {
  readonly data: SourceData;
  /** When its snapshot became the present one; `null`: longer ago than its journal tells. */
  readonly snapshotAt: number | null;
}

/** The store lacks what a bundle's spec refers to: it is not offered, as all others are. Told by every process, once until it is there again. */
export interface BundleLeftOut {
  readonly kind: "bundle left out";
  readonly source: string;
  readonly spec: string;
  readonly serviceId: string;
  readonly digest: string;
}

/**
 * What was committed of a source could not be made part of what this process offers: that stays as it was, and it is tried again every second.
 * Told by the process that it happens in, once for each reason.
 */
export interface SourceNotTakenIn {
  readonly kind: "source not taken in";
  readonly source: string;
  readonly why: string;
}

/** A pass of collection found something old enough to go. */
export interface SourceCollected {
  readonly kind: "source collected";
  readonly source: string;
  readonly collection: Collection;
  /** Nothing was removed. */
  readonly dryRun: boolean;
}

/** An action that was started. `service` is its name in the bundle. */
export interface JobFacts {
  readonly job: string;
  readonly operation: string;
  readonly service: string;
  readonly action: Action;
}

/** This process waits for a job's end, until it has left it: it ended, or another look is due later, by whichever process. */
export interface JobWatched extends JobFacts {
  readonly kind: "job watched";
}

export interface JobLeft extends JobFacts {
  readonly kind: "job left";
}

/** A job's end was seen. A kill before that is recorded has it seen once more. */
export interface JobEnded extends JobFacts {
  readonly kind: "job ended";
  readonly end: ActionEnd["kind"];
  /** Why it does not run any more; `lost`: nobody knows. */
  readonly cause: Extract<JobState, { readonly kind: "ended" }>["cause"] | "lost";
}

import type { SpecProblem } from "../formats/bundle-spec.js";
import type { ReadingProgress } from "../reconcile/observation.js";
import type { ReconcileEvent } from "../reconcile/reconcile-event.js";
import {
  failureRatio,
  isOffered,
  isStale,
  type RefusedContent,
  type SourceData,
  type SpecCounts,
  type SpecRecord,
  type SpecState,
  specState,
} from "../reconcile/records.js";

/** What the admin API shows of a source. */
export interface SourceView {
  readonly name: string;
  /** The name that ids are derived from. */
  readonly identity_name: string;
  readonly mode: SourceData["mode"];
  readonly snapshot: number;
  /** `null`: nobody knows yet what it holds. */
  readonly first_complete_at: string | null;
  readonly last_run_at: string | null;
  readonly last_complete_at: string | null;
  readonly failures: number;
  readonly failing_since: string | null;
  readonly last_error: string | null;
  /** How the last readings went, the newest last: complete, partial, failed. */
  readonly recent: string;
  /** Of these, the share that failed (F5-6). `null`: there were none. */
  readonly failure_ratio: number | null;
  /** How far a reading is that is at work in the process that answers. */
  readonly reading: ReadingView | null;
  /** By the operator's wish nothing is shown of it, because it could not be read for so long. */
  readonly hidden: boolean;
  readonly specs: SpecCounts;
  readonly guard: GuardView | null;
  readonly unkeepable: readonly string[];
}

/** How far a reading is. `of` is `null` while the list is read: then `done` counts what was listed. */
export interface ReadingView {
  readonly done: number;
  readonly of: number | null;
  readonly since: string;
}

/** A removal that is held until someone confirms it. */
export interface GuardView {
  /** To be named when it is confirmed. */
  readonly observation: string;
  readonly count: number;
  readonly of: number;
  readonly specs: readonly string[];
  readonly since: string;
  readonly times: number;
  readonly confirmed_by: string | null;
}

export interface SpecSummary {
  readonly source: string;
  readonly id: string;
  readonly state: SpecState;
  readonly service_id: string | null;
  readonly name: string | null;
  readonly version: string | null;
  readonly offered: boolean;
  readonly stale: boolean;
  readonly held: boolean;
  /** Its newest content cannot be offered. */
  readonly degraded: boolean;
}

export interface SpecView extends SpecSummary {
  readonly repository: string;
  readonly since: string | null;
  readonly why: string | null;
  readonly digest: string | null;
  readonly plans: readonly { readonly id: string; readonly name: string }[];
  readonly history: readonly { readonly digest: string; readonly version: string; readonly at: string }[];
  readonly hold: { readonly by: string; readonly why: string; readonly since: string } | null;
  readonly refused: RefusedView | null;
}

export interface RefusedView {
  readonly digest: string;
  readonly since: string;
  readonly code: string;
  readonly problems: readonly SpecProblem[];
}

/** What one commit has changed of a source: a reading, a decision of a person, or a pass of collection. */
export interface RunView {
  /** Of its entry in the source's journal. */
  readonly run: number;
  readonly at: string;
  readonly by: string;
  readonly snapshot: number;
  readonly specs: number;
  readonly event_count: number;
  /** In a list, the first few. */
  readonly events: readonly ReconcileEvent[];
}

/** One run of an action of a bundle, found by its instance. */
export interface JobView {
  readonly job: string;
  /** What the platform polls. */
  readonly operation: string;
  readonly action: string;
  readonly binding: string | null;
  /** Of the runner that has started it. */
  readonly place: string | null;
  /** When it was about to be started. */
  readonly at: string;
  /** How it ended: done, refused, try again, not known, failed, lost. Before that, the state of its operation. */
  readonly state: string;
  readonly error: string | null;
  /** The last part of its log is kept in the journal, because it failed. */
  readonly log_kept: boolean;
}

/** What would become of a source with other settings, if these were used now. */
export interface PreviewView {
  readonly source: string;
  /** Compared with those that hold now. `gone`: the source would leave, and drain. */
  readonly settings: "new" | "changed" | "the same" | "gone";
  /** How its reading went; `null`: it would not be read. */
  readonly completeness: "complete" | "partial" | "failed" | null;
  readonly error: string | null;
  readonly event_count: number;
  /** What the first reading would change. */
  readonly events: readonly ReconcileEvent[];
  /** A removal that the guard would hold. */
  readonly held: { readonly count: number; readonly of: number; readonly specs: readonly string[] } | null;
}

/** One event of a source, with the run that it was of. */
export interface EventView extends ReconcileEvent {
  readonly run: number;
  readonly at: string;
  readonly by: string;
}

export function sourceView(
  { guard, health, ...data }: SourceData,
  reading: (ReadingProgress & { readonly since: number }) | null,
): SourceView {
  return {
    name: data.name,
    identity_name: data.identityName,
    mode: data.mode,
    snapshot: data.snapshot,
    first_complete_at: time(data.firstComplete),
    last_run_at: time(health.lastRunAt),
    last_complete_at: time(health.lastCompleteAt),
    failures: health.consecutiveFailures,
    failing_since: time(health.firstFailureAt),
    last_error: health.lastError,
    recent: health.recent,
    failure_ratio: failureRatio(health.recent),
    reading: reading && { done: reading.done, of: reading.of, since: iso(reading.since) },
    hidden: data.hidden,
    specs: data.counts,
    guard: guard && {
      observation: guard.observation,
      count: guard.count,
      of: guard.of,
      specs: guard.specs,
      since: iso(guard.since),
      times: guard.times,
      confirmed_by: guard.confirmed?.by ?? null,
    },
    unkeepable: data.unkeepable,
  };
}

export function specSummary(data: SourceData, id: string, record: SpecRecord): SpecSummary {
  const service = record.kind === "service" ? record : undefined;
  return {
    source: data.name,
    id,
    state: specState(record),
    service_id: record.kind === "candidate" ? null : record.serviceId,
    name: service?.current.name ?? null,
    version: service?.current.version ?? null,
    offered: isOffered(data, record),
    stale: isStale(data, record),
    held: service !== undefined && service.held !== null,
    degraded: service !== undefined && service.refused !== null,
  };
}

export function specView(data: SourceData, id: string, record: SpecRecord): SpecView {
  const service = record.kind === "service" ? record : undefined;
  const hold = service?.held ?? null;
  return {
    ...specSummary(data, id, record),
    repository: record.ref.repository,
    ...sinceAndWhy(record),
    digest: service?.current.digest ?? null,
    plans: record.kind === "candidate" ? [] : (service?.current.plans ?? record.knownPlans),
    history: (service?.history ?? []).map(({ digest, version, at }) => ({ digest, version, at: iso(at) })),
    hold: hold && { by: hold.by, why: hold.why, since: iso(hold.since) },
    refused: refusedView(contentOf(record)),
  };
}

function sinceAndWhy(record: SpecRecord): Pick<SpecView, "since" | "why"> {
  switch (record.kind) {
    case "candidate": {
      const { because } = record;
      return { since: iso(because.since), why: because.kind === "unreadable" ? because.why : because.code };
    }
    case "service": {
      const { state, stale } = record;
      return { since: iso(state.since), why: state.kind === "active" ? (stale?.why ?? null) : state.why };
    }
    case "deleted":
      return { since: iso(record.deletedAt), why: null };
  }
}

function contentOf(record: SpecRecord): RefusedContent | null {
  if (record.kind === "service") return record.refused;
  return record.kind === "candidate" && record.because.kind === "refused content" ? record.because : null;
}

function refusedView(content: RefusedContent | null): RefusedView | null {
  return (
    content && {
      digest: content.digest,
      since: iso(content.since),
      code: content.code,
      problems: content.problems,
    }
  );
}

function time(ms: number | null): string | null {
  return ms === null ? null : iso(ms);
}

export function iso(ms: number): string {
  return new Date(Math.min(ms, 8.64e15)).toISOString();
}

import { MadeMap } from "./made-map.js";
import type { Revision } from "./observation.js";
import type { EventCode, ReconcileEvent } from "./reconcile-event.js";
import {
  isOffered,
  isWithdrawn,
  type RevisionFacts,
  type RevisionPart,
  type RevisionRecord,
  revisionPart,
  type SourceData,
  type SpecCounts,
  type SpecRecord,
  type SpecState,
  type StoredSource,
  specState,
} from "./records.js";

/** What a decision changes of a source. */
export interface SourceChange {
  readonly data: SourceData;
  /** Those that change, by `specId`; `null` removes one. */
  readonly specs: ReadonlyMap<string, SpecRecord | null>;
  /** New ones, and (`null`) those to remove. */
  readonly revisions: ReadonlyMap<RevisionPart, RevisionRecord | null>;
  readonly events: readonly ReconcileEvent[];
  /** Whether what the source gives to the catalog is another thing than before; then its snapshot number is, too. */
  readonly catalogChanged: boolean;
  /** Nothing has changed but times and counts of its health: who ends a run anyway takes `data` along, and nobody else has to write (F5-80). */
  readonly quiet: boolean;
}

/** Collects what a decision changes. It lives as long as the decision. */
export interface SourceDraft {
  /** With what was changed so far. */
  spec(id: string): SpecRecord | undefined;
  put(id: string, record: SpecRecord | null): void;
  /** What was read, and what is decided of it. */
  addRevision(id: string, revision: Revision, facts: RevisionFacts): void;
  removeRevision(part: RevisionPart): void;
  tell(code: EventCode, why: string, spec?: string): void;
  /** With the data as they are from now on; snapshot and counts are seen to. */
  finish(data: SourceData): SourceChange;
}

export function draftOf({ data: before, specs: stored }: StoredSource): SourceDraft {
  const specs = new Map<string, SpecRecord | null>();
  // Of what was read: a first reading has thousands of descriptions in memory, and none of them twice.
  const revisions = new MadeMap<RevisionPart, AddedRevision | null, RevisionRecord | null>(
    (added) => added && recordOf(added),
  );
  const events: ReconcileEvent[] = [];
  const present = (id: string) => (specs.has(id) ? (specs.get(id) ?? undefined) : stored.get(id));
  return {
    spec: present,
    put(id, record) {
      if ((record ?? undefined) !== present(id)) specs.set(id, record);
    },
    addRevision(id, revision, facts) {
      revisions.keep(revisionPart(id, revision.digest), { revision, facts });
    },
    removeRevision(part) {
      revisions.keep(part, null);
    },
    tell(code, why, spec) {
      const record = spec === undefined ? undefined : (present(spec) ?? stored.get(spec));
      const serviceId = record === undefined || record.kind === "candidate" ? null : record.serviceId;
      events.push({ code, spec: spec ?? null, serviceId, why });
    },
    finish(data) {
      const catalogChanged = changesCatalog({ data: before, specs: stored }, data, specs);
      return {
        data: {
          ...data,
          snapshot: before.snapshot + (catalogChanged ? 1 : 0),
          counts: countsAfter(before.counts, stored, specs),
        },
        specs,
        revisions,
        events,
        catalogChanged,
        quiet: !catalogChanged && specs.size === 0 && revisions.size === 0 && events.length === 0,
      };
    },
  };
}

interface AddedRevision {
  readonly revision: Revision;
  readonly facts: RevisionFacts;
}

function recordOf({ revision, facts }: AddedRevision): RevisionRecord {
  const { digest, spec, artifact, parserVersion } = revision;
  return { digest, spec, artifact, parserVersion, ...facts };
}

/** Whether a source gives something else to the catalog with these data and these specs than it did. */
export function changesCatalog(
  { data: before, specs: stored }: StoredSource,
  data: SourceData,
  specs: SourceChange["specs"],
): boolean {
  return (
    (data.firstComplete === null) !== (before.firstComplete === null) ||
    (data.hidden !== before.hidden && [...stored.values()].some(isKeptService)) ||
    [...specs].some(([id, record]) => contribution(before, stored.get(id)) !== contribution(data, record ?? undefined))
  );
}

function isKeptService(record: SpecRecord): boolean {
  return record.kind === "service" && record.state.kind !== "retired";
}

/**
 * What a spec gives to the catalog: what is equal here gives the same bytes there. What has retired keeps its id, its name and its plans'
 * ids from others, until it is deleted.
 */
function contribution(data: SourceData, record: SpecRecord | undefined): string | null {
  if (record?.kind !== "service") return null;
  const { digest, version, name, plans } = record.current;
  const shown = isOffered(data, record) ? [digest, version] : [isWithdrawn(record)];
  return JSON.stringify([record.serviceId, name, plans.map(({ id, name }) => [id, name]), shown]);
}

/** Only what changes is looked at: of 15,000 specs, one. */
export function countsAfter(
  counts: SpecCounts,
  stored: StoredSource["specs"],
  changed: ReadonlyMap<string, SpecRecord | null>,
): SpecCounts {
  const after: Record<SpecState, number> = { ...counts };
  for (const [id, record] of changed) {
    const was = stored.get(id);
    if (was !== undefined) after[specState(was)] -= 1;
    if (record !== null) after[specState(record)] += 1;
  }
  return after;
}

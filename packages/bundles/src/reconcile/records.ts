import type { SpecProblem } from "../formats/bundle-spec.js";
import type { Digest } from "../sources/source.js";
import type { ChannelRef, Revision } from "./observation.js";

/** The resource of the journal that a source is, by the name that it was first configured under: see `identifySources`. */
export function sourceKey(name: string): string {
  return `bundles.source.${name}`;
}

export type SpecPart = `spec/${string}`;

export type RevisionPart = `revision/${string}`;

/** Before the ids of all parts that hold specs, and of those that hold revisions. */
export const specPrefix = "spec/";

export const revisionPrefix = "revision/";

export function specPart(spec: string): SpecPart {
  return `${specPrefix}${spec}`;
}

/** A digest has no `@`, and is the last: what stands before it may have one. */
export function revisionPart(spec: string, digest: Digest): RevisionPart {
  return `${revisionPrefix}${spec}@${digest}`;
}

/** The way back from `revisionPart`. */
export function specOfRevision(part: RevisionPart): string {
  return part.slice(revisionPrefix.length, part.lastIndexOf("@"));
}

export function digestOfRevision(part: RevisionPart): Digest {
  return part.slice(part.lastIndexOf("@") + 1) as Digest;
}

/** Of a spec's id: with the words and the digest around it, it is the id of a part, which has at most 512 bytes. */
export const maxSpecIdBytes = 400;

/** Of what a service remembers of its plans. */
export const maxKnownPlans = 400;

/** Of a service's history. What is older stays as long as something refers to it, and is not named any more. */
export const maxHistory = 500;

/** What is kept of a source itself: small, whatever the number of its specs. */
export interface SourceData {
  /** What operators call it now. */
  readonly name: string;
  /** The name that ids are derived from: the first one it had (F5-24). */
  readonly identityName: string;
  /** Of its configuration: a hash. */
  readonly generation: string;
  /** `false`: it has no list, as the built-in source of pushes; nothing of it is ever missing (F5-64). */
  readonly listing: boolean;
  /**
   * What its settings said last of its place among others. It is kept, because a source that the settings lack by now ranks as it did, and in
   * every process alike (F5-59, 72). Missing: kept by an earlier version, and not configured since.
   */
  readonly rank?: SourceRank;
  /** `draining`: it has left the configuration, nothing is read, its specs retire (F5-23). `disabled`: nothing is read and nothing retires (F5-28). */
  readonly mode: "active" | "draining" | "disabled";
  /** Who has taken a draining source out of use by a word of their own: the guard does not hold that up. `null`: the configuration lacks it, and the guard does. */
  readonly drainedBy: string | null;
  /** Rises when, and only when, what this source gives to the catalog changes (F5-80): what it offers, and the ids and names that it keeps others from. */
  readonly snapshot: number;
  /** When a list was first read to its end, with something of it: before that, nobody knows what it holds (F5-4, 46). */
  readonly firstComplete: number | null;
  readonly health: SourceHealth;
  readonly guard: HeldRemoval | null;
  /** The one that was taken in last: taken in once more, after a kill, it would count twice. */
  readonly lastObservation: string | null;
  /** F5-5: it has not been readable for so long that, by the operator's wish, nothing of it is shown. */
  readonly hidden: boolean;
  /**
   * Milliseconds that passed between readings of the list that followed upon each other. The age of what is missing is told on this clock:
   * it stands still while the source cannot be read.
   */
  readonly readableMs: number;
  /** When the list was last read to its end; `null`: the last reading failed, and the clock stands. */
  readonly readableAt: number | null;
  /** Refs whose names no store could keep, the first few: they are left out. */
  readonly unkeepable: readonly string[];
  /** Repositories that lacked the tag that is read of them, and are no services, in the last complete reading. Missing: none. */
  readonly untagged?: number;
  readonly counts: SpecCounts;
}

export interface SourceRank {
  /** The higher wins. */
  readonly priority: number;
  /** Whether it may take over a service of another source that has retired there (F5-59). */
  readonly failover: boolean;
}

export type SpecCounts = { readonly [State in SpecState]: number };

export interface SourceHealth {
  readonly lastRunAt: number | null;
  /** The last `complete` reading: its age is what an alert looks at. */
  readonly lastCompleteAt: number | null;
  readonly consecutiveFailures: number;
  readonly firstFailureAt: number | null;
  readonly lastError: string | null;
  /** How the last readings went, the newest last: `c`omplete, `p`artial, `f`ailed (F5-6). At most `recentRuns`. */
  readonly recent: string;
}

/** F5-6: of the last readings, as `recent` tells them, the share that failed. `null`: there were none. */
export function failureRatio(recent: string): number | null {
  return recent === "" ? null : (recent.split("f").length - 1) / recent.length;
}

/** F5-17: specs that a reading lacks, too many at once to believe it. They stay as they are until this is released. */
export interface HeldRemoval {
  /** The observation that has to be confirmed. */
  readonly observation: string;
  /** Of all spec ids, the configuration's generation and the reason: whether a later reading says the same. */
  readonly fingerprint: string;
  readonly count: number;
  /** Of how many that were active. */
  readonly of: number;
  /** The first hundred of them. */
  readonly specs: readonly string[];
  readonly since: number;
  /** How many complete readings said so. */
  readonly times: number;
  readonly confirmed: { readonly by: string; readonly at: number } | null;
}

/**
 * A spec, as it is kept. A `candidate` has never been offered: it could not be read yet, or what was read cannot be used. What has been
 * `deleted` leaves its ids behind for a while, so that they come back with it.
 */
export type SpecRecord = CandidateRecord | ServiceRecord | TombstoneRecord;

export interface CandidateRecord {
  readonly kind: "candidate";
  readonly ref: ChannelRef;
  readonly firstSeenAt: number;
  readonly because:
    | { readonly kind: "unreadable"; readonly why: string; readonly since: number }
    | ({ readonly kind: "refused content" } & RefusedContent);
}

/** Content that was read and cannot be offered: it is not read again (F5-10, 36, 44). */
export interface RefusedContent {
  readonly digest: Digest;
  readonly since: number;
  readonly code: RefusalCode;
  readonly problems: readonly SpecProblem[];
  /** A newer parser looks at it again (F5-77). */
  readonly parserVersion: number;
}

/** `plans in use`: it lacks plans that have instances, and waits for a word (F5-19). `signature`: it waits for one (F5-38). `runtime`: it waits for a runner that can run it (F5-36). */
export type RefusalCode =
  | "invalid"
  | "not a bundle"
  | "no plans"
  | "version"
  | "id changed"
  | "plan id twice"
  | "too large"
  | "plans in use"
  | "signature"
  | "runtime";

export interface ServiceRecord {
  readonly kind: "service";
  readonly ref: ChannelRef;
  /** For ever the same. */
  readonly serviceId: string;
  /** Whether the author gave the id, or it comes from where the bundle lies, or from its name as in the predecessor (F5-57, 62). */
  readonly idFrom: "spec" | "place" | "legacy";
  readonly state: ServiceState;
  readonly current: CurrentRevision;
  /** Revisions that are kept, the current one among them, the newest first. */
  readonly history: readonly KeptRevision[];
  /** The plans that it ever had, at most `maxKnownPlans`: a plan that comes back has its id again. */
  readonly knownPlans: readonly PlanIdentity[];
  readonly firstSeenAt: number;
  /** The newest reading could not read it, or not what it has become; nothing is concluded from that. A source that fails as a whole is not written here: ask `isStale`. */
  readonly stale: { readonly since: number; readonly why: string } | null;
  /** Nothing of it changes by itself. */
  readonly held: { readonly since: number; readonly by: string; readonly why: string } | null;
  /** `degraded`: its newest content was refused, and the current revision is the last good one. */
  readonly refused: RefusedContent | null;
  /** Content that may be taken although it lacks plans that have instances. */
  readonly confirmed: Digest | null;
}

export type ServiceState =
  | { readonly kind: "active"; readonly since: number }
  | {
      readonly kind: "missing";
      readonly since: number;
      readonly reason: MissingReason;
      readonly why: string;
      /** Readings in a row that lack it; one that failed neither counts nor interrupts. */
      readonly count: number;
      /** The one of them that was counted last: decided again, after another commit came between its own, it counts no more. Missing: kept by an earlier version. */
      readonly countedIn?: string;
      /** How long it has been missing, in time in which the source could be read. */
      readonly agedMs: number;
      /** Where the source's `readableMs` stood when it was last found missing. `null`: it could not be told then. */
      readonly agedTo: number | null;
    }
  | { readonly kind: "retired"; readonly since: number; readonly reason: RetiredReason; readonly why: string };

export type MissingReason = "absent" | "not a bundle" | "config";

/** `removed`: a push that was taken back, or whose time was over. `withdrawn` by a person: it stays so until a person restores it. */
export type RetiredReason = MissingReason | "unreachable" | "removed" | "withdrawn";

/** Of the current revision, what the catalog is merged from. */
export interface CurrentRevision extends KeptRevision {
  readonly name: string;
  /** Of the spec in its canonical form (F5-59). */
  readonly fingerprint: string;
  readonly plans: readonly PlanIdentity[];
}

export interface KeptRevision {
  readonly digest: Digest;
  /** As in `maintenance_info` (F5-30 to 33). Never that of another digest. */
  readonly version: string;
  /** When it became current. */
  readonly at: number;
}

export interface PlanIdentity {
  readonly id: string;
  readonly name: string;
}

export interface TombstoneRecord {
  readonly kind: "deleted";
  readonly ref: ChannelRef;
  readonly serviceId: string;
  readonly idFrom: ServiceRecord["idFrom"];
  readonly knownPlans: readonly PlanIdentity[];
  readonly deletedAt: number;
}

/** A revision, as it is kept: written once, never changed, removed when nothing refers to it. */
export interface RevisionRecord extends Revision, RevisionFacts {}

/** What is decided of a revision that was read. */
export interface RevisionFacts {
  readonly serviceId: string;
  readonly ref: ChannelRef;
  readonly version: string;
  readonly plans: readonly PlanIdentity[];
  readonly fingerprint: string;
  readonly readAt: number;
}

/** All that is kept of a source but its revisions. */
export interface StoredSource {
  readonly data: SourceData;
  /** By `specId`. */
  readonly specs: ReadonlyMap<string, SpecRecord>;
}

/** The states of a spec in one word, for lists and metrics. */
export const specStates = ["pending", "rejected", "active", "missing", "retired", "deleted"] as const;

export type SpecState = (typeof specStates)[number];

export function specState(record: SpecRecord): SpecState {
  switch (record.kind) {
    case "candidate":
      return record.because.kind === "unreadable" ? "pending" : "rejected";
    case "service":
      return record.state.kind;
    case "deleted":
      return "deleted";
  }
}

/** Whether what is known of a spec may be old: it, or its source, could not be read, or nobody reads it (F5-1, 7, 28). */
export function isStale(data: SourceData, record: SpecRecord): boolean {
  return (
    data.mode !== "active" ||
    data.health.consecutiveFailures > 0 ||
    (record.kind === "service" && record.stale !== null)
  );
}

/** Whether a spec stands in the catalog, as far as its own source is concerned. In `missing` it does: hiding and showing again would make platforms mark it as removed. */
export function isOffered(data: SourceData, record: SpecRecord): record is ServiceRecord {
  return !data.hidden && record.kind === "service" && record.state.kind !== "retired";
}

/** By a person, until a person restores it. */
export function isWithdrawn(record: SpecRecord): boolean {
  return record.kind === "service" && record.state.kind === "retired" && record.state.reason === "withdrawn";
}

export function isSameRank(one: SourceRank | undefined, other: SourceRank | undefined): boolean {
  return one?.priority === other?.priority && one?.failover === other?.failover;
}

/** A source that nothing is known of yet. */
export function newSource(name: string, generation: string, { listing = true } = {}): SourceData {
  return {
    name,
    identityName: name,
    generation,
    listing,
    mode: "active",
    drainedBy: null,
    snapshot: 0,
    firstComplete: null,
    health: {
      lastRunAt: null,
      lastCompleteAt: null,
      consecutiveFailures: 0,
      firstFailureAt: null,
      lastError: null,
      recent: "",
    },
    guard: null,
    lastObservation: null,
    hidden: false,
    readableMs: 0,
    readableAt: null,
    unkeepable: [],
    counts: { pending: 0, rejected: 0, active: 0, missing: 0, retired: 0, deleted: 0 },
  };
}

/** What of a source was read and cannot be offered, by specs. */
export function refusedContents(stored: StoredSource | undefined): ReadonlyMap<string, RefusedContent> {
  const found = new Map<string, RefusedContent>();
  stored?.specs.forEach((record, spec) => {
    if (record.kind === "candidate" && record.because.kind === "refused content") found.set(spec, record.because);
    if (record.kind === "service" && record.refused !== null) found.set(spec, record.refused);
  });
  return found;
}

import { isKeepable } from "@osbert/journal";
import type { SpecProblem } from "../formats/bundle-spec.js";
import { type Admission, admitRevision } from "./admit-revision.js";
import type { ChannelRef, Observation, RefSeen, Revision } from "./observation.js";
import {
  type CandidateRecord,
  type MissingReason,
  maxSpecIdBytes,
  type RefusalCode,
  type RefusedContent,
  type ServiceRecord,
  type ServiceState,
  type SourceData,
  type SourceHealth,
  type SpecRecord,
  type StoredSource,
} from "./records.js";
import { type GuardRuling, guardRemovals, type Removal } from "./removal-guard.js";
import { type Grace, leastUnreachableMs, type Rules, recentRuns } from "./rules.js";
import { draftOf, type SourceChange, type SourceDraft } from "./source-change.js";

/** What reconciling takes besides what is stored and what was seen. */
export interface ReconcileFacts {
  readonly rules: Rules;
  /** The store's time. */
  readonly now: number;
  /** Of those that `useToAsk` names: which have instances. */
  readonly inUse: InUse;
  /** Specs whose current revision the store has lost: if it was read, it is written again. Default: none. */
  readonly unstored?: ReadonlySet<string>;
}

export interface InUse {
  readonly services: ReadonlySet<string>;
  readonly plans: ReadonlySet<string>;
}

/**
 * From what is kept of a source, and one reading of it, to what is to be kept (F2). It never waits and never looks anywhere. Only positive
 * evidence removes: a list that was read to its end and lacks a spec, often enough and for long enough. What could not be read changes
 * nothing but what is known of the source's health.
 */
export function reconcile(stored: StoredSource, observation: Observation, facts: ReconcileFacts): SourceChange {
  const { data } = stored;
  const draft = draftOf(stored);
  // Made for another configuration, or for a source that nobody wants to be read: what it lacks may be wanted now.
  if (observation.generation !== data.generation || data.mode === "disabled") return draft.finish(data);
  if (observation.id === data.lastObservation) return draft.finish(data);
  const listed = observation.completeness !== "failed";
  const { absences, unkeepable, isAll } = takeIn(draft, stored, observation, facts);
  if (listed && !isAll) absences.push(...unlisted(stored, observation));
  const before = afterReading(data, observation, facts.now);
  const removed = listed
    ? remove(draft, stored, before, absences, observation, facts)
    : unreachable(draft, stored, before, observation, facts);
  tellHealth(draft, data, removed);
  const untagged = observation.completeness === "complete" ? tellUntagged(draft, stored, observation) : {};
  return draft.finish({
    ...removed,
    ...untagged,
    lastObservation: observation.id,
    unkeepable: unkeepable.slice(0, unkeepableNamed),
  });
}

/** What a draining source is reconciled with: nothing is read any more, and it lacks everything (F5-23). */
export function drainedObservation({ generation }: SourceData, id: string): Observation {
  const nothing = { refs: new Map(), error: null, retryAfterMs: null, parserVersion: 0 };
  return { id, generation, completeness: "complete", ...nothing };
}

const unkeepableNamed = 10;

function isKeepableSpecId(id: string): boolean {
  return id !== "" && Buffer.byteLength(id) <= maxSpecIdBytes && isKeepable(id);
}

/** A service that a reading says is not there. */
interface Absence {
  readonly spec: string;
  readonly record: ServiceRecord;
  readonly reason: MissingReason;
  readonly why: string;
}

interface TakenIn {
  /** What is to go. */
  readonly absences: Absence[];
  /** Refs whose names no store could keep. What is known has one that it can. */
  readonly unkeepable: readonly string[];
  /** All that is known was seen: of thousands, nobody has to look for what was not. */
  readonly isAll: boolean;
}

/** Every ref that was seen: what it adds and changes at once; what is to go is handed back. */
function takeIn(draft: SourceDraft, stored: StoredSource, observation: Observation, facts: ReconcileFacts): TakenIn {
  const absences: Absence[] = [];
  const unkeepable: string[] = [];
  let seenOfKnown = 0;
  observation.refs.forEach(({ ref, seen }, spec) => {
    const known = stored.specs.get(spec);
    if (known !== undefined) seenOfKnown += 1;
    if (facts.unstored?.has(spec) && known?.kind === "service") storeAgain(draft, spec, known, seen, facts.now);
    if (known !== undefined && isAsKept(known, ref, seen)) return;
    if (known === undefined && !isKeepableSpecId(spec)) return void unkeepable.push(spec);
    if (known?.kind === "service" && isFrozen(known)) return;
    const finding = findingOf(known, seen, observation.parserVersion, facts.now);
    const absence = takeInOne(draft, { spec, known, ref, finding }, stored.data, observation, facts);
    if (absence !== null) absences.push(absence);
  });
  return { absences, unkeepable, isAll: seenOfKnown === stored.specs.size };
}

interface Found {
  readonly spec: string;
  readonly known: SpecRecord | undefined;
  readonly ref: ChannelRef;
  readonly finding: Finding;
}

function takeInOne(
  draft: SourceDraft,
  { spec, known, ref, finding }: Found,
  data: SourceData,
  { completeness }: Observation,
  facts: ReconcileFacts,
): Absence | null {
  switch (finding.kind) {
    case "nothing":
      return null;
    case "there":
      if (known?.kind === "service") draft.put(spec, there(draft, spec, known, ref, finding.cleared, facts.now));
      return null;
    case "content": {
      const revision = finding.seen.revision;
      const admission = admitRevision(revision, {
        ref,
        known: known === undefined || known.kind === "candidate" ? null : known,
        source: data.identityName,
        rules: facts.rules,
        plansInUse: facts.inUse.plans,
        now: facts.now,
      });
      if (admission.kind === "admitted") admit(draft, spec, known, revision, ref, admission, facts.now);
      else {
        const { code, problems } = admission;
        const parserVersion = revision.parserVersion;
        refuse(draft, spec, known, ref, { digest: revision.digest, since: facts.now, code, problems, parserVersion });
      }
      return null;
    }
    case "refused":
      refuse(draft, spec, known, ref, finding.content);
      return null;
    case "gone": {
      if (known?.kind === "candidate" && completeness !== "failed") draft.put(spec, null);
      if (known?.kind !== "service") return null;
      const record = finding.content === null ? known : { ...known, refused: finding.content };
      // It is remembered that this is no bundle, so that it is not read again; the rest is decided with all that is to go.
      if (finding.content !== null && known.refused?.digest !== finding.content.digest) draft.put(spec, record);
      return { spec, record, reason: finding.reason, why: finding.why };
    }
    case "removed":
      takeBack(draft, spec, known, finding.why, facts.now);
      return null;
    case "unreadable":
      unreadable(draft, spec, known, ref, finding.why, facts.now);
      return null;
  }
}

/** All but its description is in the spec: it is as it was, whoever holds it. */
function storeAgain(draft: SourceDraft, spec: string, known: ServiceRecord, seen: RefSeen, now: number): void {
  const { ref, serviceId, current } = known;
  if (seen.kind !== "read" || seen.revision.digest !== current.digest) return;
  const { version, plans, fingerprint } = current;
  draft.addRevision(spec, seen.revision, { ref, serviceId, version, plans, fingerprint, readAt: now });
  draft.tell("spec.recovered", `${current.digest} was not stored any more, and was read again`, spec);
}

/** As nearly all specs are with each reading: there, and nothing is known against it. It only saves the look at what that means. */
function isAsKept(known: SpecRecord, ref: ChannelRef, seen: RefSeen): boolean {
  return (
    known.kind === "service" &&
    seen.kind === "same" &&
    known.current.digest === seen.digest &&
    known.state.kind === "active" &&
    known.stale === null &&
    known.refused === null &&
    known.ref.tag === ref.tag
  );
}

/** By a person: nothing of it changes by itself. */
function isFrozen({ held, state }: ServiceRecord): boolean {
  return held !== null || (state.kind === "retired" && state.reason === "withdrawn");
}

/** What a verdict means for what is known. */
type Finding =
  | { readonly kind: "nothing" }
  /** It is there. `cleared`: with its current content, so that nothing is refused any more. */
  | { readonly kind: "there"; readonly cleared: boolean }
  | { readonly kind: "content"; readonly seen: RefSeen & { readonly kind: "read" } }
  | { readonly kind: "refused"; readonly content: RefusedContent }
  | {
      readonly kind: "gone";
      readonly reason: MissingReason;
      readonly why: string;
      readonly content: RefusedContent | null;
    }
  | { readonly kind: "removed"; readonly why: string }
  | { readonly kind: "unreadable"; readonly why: string };

function findingOf(known: SpecRecord | undefined, seen: RefSeen, parserVersion: number, now: number): Finding {
  const refused = refusedOf(known);
  const current = known?.kind === "service" ? known.current.digest : null;
  switch (seen.kind) {
    case "same":
      // What was refused for its signature alone is asked for one before it is called the same: it has it now.
      if (refused?.digest === seen.digest && refused.code !== "signature") return again(known, refused);
      return known?.kind === "service" ? { kind: "there", cleared: current === seen.digest } : { kind: "nothing" };
    case "read":
      if (current === seen.revision.digest) return { kind: "there", cleared: true };
      // F5-77: what a newer parser has refused, an older one does not let in.
      if (refused?.digest === seen.revision.digest && refused.parserVersion > seen.revision.parserVersion)
        return again(known, refused);
      return { kind: "content", seen };
    case "absent":
      return { kind: "gone", reason: "absent", why: "the source does not have it any more", content: null };
    case "filtered":
      return { kind: "gone", reason: "config", why: seen.why, content: null };
    case "removed":
      return { kind: "removed", why: seen.why };
    case "unreadable":
      return { kind: "unreadable", why: bounded(seen.why) };
    // Also of what is offered: that stays, but nobody shall believe that it is signed.
    case "unsigned": {
      const problems = boundedProblems([problemOf(seen.why)]);
      return {
        kind: "refused",
        content: { digest: seen.digest, since: now, code: "signature", problems, parserVersion },
      };
    }
    case "invalid":
    case "unsupported":
    case "not a bundle": {
      if (current === seen.digest) return { kind: "there", cleared: true };
      if (refused?.digest === seen.digest && refused.parserVersion >= parserVersion) return again(known, refused);
      const code: RefusalCode = seen.kind === "unsupported" ? "runtime" : seen.kind;
      const problems = seen.kind === "invalid" ? seen.problems : [problemOf(seen.why)];
      const content = { digest: seen.digest, since: now, code, problems: boundedProblems(problems), parserVersion };
      if (known?.kind === "service" && seen.kind === "not a bundle")
        return { kind: "gone", reason: "not a bundle", why: bounded(seen.why), content };
      return { kind: "refused", content };
    }
  }
}

/** Content that was refused before, and was not read again. */
function again(known: SpecRecord | undefined, refused: RefusedContent): Finding {
  if (known?.kind !== "service") return { kind: "nothing" };
  if (refused.code !== "not a bundle")
    return known.state.kind === "retired" ? { kind: "nothing" } : { kind: "there", cleared: false };
  const why = refused.problems[0]?.message ?? "it is not a bundle any more";
  return { kind: "gone", reason: "not a bundle", why, content: refused };
}

function refusedOf(known: SpecRecord | undefined): RefusedContent | null {
  if (known?.kind === "service") return known.refused;
  return known?.kind === "candidate" && known.because.kind === "refused content" ? known.because : null;
}

/** It was seen: it is active, and whatever was counted against it is forgotten. The same object where nothing changes. */
function there(
  draft: SourceDraft,
  spec: string,
  known: ServiceRecord,
  ref: ChannelRef,
  cleared: boolean,
  now: number,
): ServiceRecord {
  const refused = cleared ? null : known.refused;
  const state: ServiceState = known.state.kind === "active" ? known.state : { kind: "active", since: now };
  if (known.state.kind !== "active")
    draft.tell("spec.returned", `it was ${known.state.kind}: ${known.state.why}`, spec);
  if (known.stale !== null) draft.tell("spec.fresh", "it can be read again", spec);
  if (known.refused !== null && refused === null)
    draft.tell("spec.recovered", `${known.current.digest} is what the source has again`, spec);
  const moved = known.ref.tag !== ref.tag;
  const changed = moved || state !== known.state || known.stale !== null || refused !== known.refused;
  return changed ? { ...known, ref, state, stale: null, refused } : known;
}

function admit(
  draft: SourceDraft,
  spec: string,
  known: SpecRecord | undefined,
  revision: Revision,
  ref: ChannelRef,
  { facts, idFrom, current, history, knownPlans, remark }: Admission & { readonly kind: "admitted" },
  now: number,
): void {
  const service = known?.kind === "service" ? known : null;
  const state: ServiceState = service?.state.kind === "active" ? service.state : { kind: "active", since: now };
  draft.put(spec, {
    kind: "service",
    ref,
    serviceId: facts.serviceId,
    idFrom,
    state,
    current,
    history,
    knownPlans,
    // Who comes back after having been deleted was not there first: see how catalogs are merged.
    firstSeenAt: service?.firstSeenAt ?? now,
    stale: null,
    held: null,
    refused: null,
    confirmed: null,
  });
  // What was kept of this digest before is the same, and is not written again.
  if (!service?.history.some(({ digest }) => digest === revision.digest)) draft.addRevision(spec, revision, facts);
  if (service === null) draft.tell("spec.added", `version ${current.version}, ${current.digest}`, spec);
  else {
    if (service.state.kind !== "active")
      draft.tell("spec.returned", `it was ${service.state.kind}: ${service.state.why}`, spec);
    if (service.refused !== null) draft.tell("spec.recovered", `${current.digest} can be offered`, spec);
    draft.tell("spec.updated", `version ${current.version} after ${service.current.version}, ${current.digest}`, spec);
  }
  if (remark === "unchanged")
    draft.tell("version.unchanged", `it is called ${current.version}; give a new bundleVersion with new content`, spec);
  if (remark === "downgraded")
    draft.tell(
      "version.downgraded",
      `${current.version} after ${service?.current.version}; instances stay where they are`,
      spec,
    );
}

/** Content that cannot be offered: what was offered before stays (F5-10). Its being there brings back what is missing, not what has retired. */
function refuse(
  draft: SourceDraft,
  spec: string,
  known: SpecRecord | undefined,
  ref: ChannelRef,
  found: RefusedContent,
): void {
  const before = refusedOf(known);
  // Found again as it was: no news, and nothing to write.
  const content = before !== null && isSameRefusal(before, found) ? before : found;
  const why = content.problems.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
  if (known?.kind === "deleted") return;
  if (known?.kind === "service") {
    const seen = known.state.kind === "retired" ? known : there(draft, spec, known, ref, false, found.since);
    draft.put(spec, seen.refused === content ? seen : { ...seen, refused: content });
    if (before?.digest !== content.digest) draft.tell("spec.degraded", bounded(why), spec);
    return;
  }
  if (content === before) return;
  const firstSeenAt = known?.firstSeenAt ?? content.since;
  draft.put(spec, { kind: "candidate", ref, firstSeenAt, because: { kind: "refused content", ...content } });
  // Most of what lies in a registry may be no bundle: that is remembered, and no news.
  if (content.code !== "not a bundle") draft.tell("spec.rejected", bounded(why), spec);
}

function isSameRefusal(one: RefusedContent, other: RefusedContent): boolean {
  const facts = ({ digest, code, problems, parserVersion }: RefusedContent) =>
    JSON.stringify([digest, code, parserVersion, problems.map(({ path, message }) => [path, message])]);
  return facts(one) === facts(other);
}

/** F5-64, 65: it retires, whatever instances it has: they go on. */
function takeBack(draft: SourceDraft, spec: string, known: SpecRecord | undefined, why: string, now: number): void {
  if (known?.kind === "candidate") draft.put(spec, null);
  if (known?.kind !== "service" || known.state.kind === "retired") return;
  draft.put(spec, { ...known, stale: null, state: { kind: "retired", since: now, reason: "removed", why } });
  draft.tell("spec.retired", why, spec);
}

function unreadable(
  draft: SourceDraft,
  spec: string,
  known: SpecRecord | undefined,
  ref: ChannelRef,
  why: string,
  now: number,
): void {
  if (known?.kind === "deleted") return;
  if (known?.kind === "service") {
    const state = frozenState(known.state);
    const stale = known.stale?.why === why ? known.stale : { since: known.stale?.since ?? now, why };
    if (state === known.state && stale === known.stale) return;
    draft.put(spec, { ...known, state, stale });
    if (known.stale === null) draft.tell("spec.stale", why, spec);
    return;
  }
  if (known?.kind === "candidate" && (known.because.kind !== "unreadable" || known.because.why === why)) return;
  const candidate: CandidateRecord = {
    kind: "candidate",
    ref,
    firstSeenAt: known?.firstSeenAt ?? now,
    because: { kind: "unreadable", why, since: now },
  };
  draft.put(spec, candidate);
  if (known === undefined) draft.tell("spec.pending", why, spec);
}

/** The clock of what is missing stands while it cannot be told. */
function frozenState(state: ServiceState): ServiceState {
  return state.kind === "missing" && state.agedTo !== null ? { ...state, agedTo: null } : state;
}

/** What is known and was not in a list that was read to its end. */
function unlisted({ data, specs }: StoredSource, { refs }: Observation): readonly Absence[] {
  if (!data.listing && data.mode === "active") return [];
  const reason = data.mode === "draining" ? "config" : "absent";
  const why = data.mode === "draining" ? "its source has left the configuration" : "the source does not list it";
  const absences: Absence[] = [];
  specs.forEach((record, spec) => {
    if (record.kind === "service" && !isFrozen(record) && !refs.has(spec)) absences.push({ spec, record, reason, why });
  });
  return absences;
}

/** All that a run takes away, or nothing of it. Answers the source's data after it. */
function remove(
  draft: SourceDraft,
  stored: StoredSource,
  data: SourceData,
  absences: readonly Absence[],
  observation: Observation,
  { rules, now }: ReconcileFacts,
): SourceData {
  const removals: readonly Removal[] = absences.filter(({ record }) => record.state.kind === "active");
  const ruling: GuardRuling =
    data.drainedBy === null
      ? guardRemovals(removals, activeOf(stored), data, observation, rules, now)
      : { kind: "go", released: null };
  if (ruling.kind === "held") {
    const { guard } = ruling;
    if (ruling.tripped)
      draft.tell("guard.tripped", `${guard.count} of ${guard.of} would go: ${guard.specs.join(", ")}`);
    // Nothing of the removal is done: what is missing already does not grow older, either.
    return { ...data, guard, readableMs: stored.data.readableMs };
  }
  if (data.guard !== null) {
    const released = ruling.released === "confirmed" ? `confirmed by ${data.guard.confirmed?.by}` : "seen often enough";
    if (ruling.released !== null) draft.tell("guard.released", released);
    else draft.tell("guard.cleared", `${removals.length} of the ${data.guard.count} are missing now`);
  }
  for (const absence of absences) removeOne(draft, absence, data, observation.id, { rules, now });
  if (data.listing || data.mode === "draining")
    stored.specs.forEach((record, spec) => {
      if (record.kind === "candidate" && !observation.refs.has(spec)) draft.put(spec, null);
    });
  return { ...data, guard: null };
}

/** What a run could take away. */
function activeOf({ specs }: StoredSource): number {
  let active = 0;
  specs.forEach((record) => {
    if (record.kind === "service" && record.state.kind === "active" && record.held === null) active += 1;
  });
  return active;
}

function removeOne(
  draft: SourceDraft,
  { spec, record, reason, why }: Absence,
  { readableMs }: SourceData,
  reading: string,
  { rules, now }: Pick<ReconcileFacts, "rules" | "now">,
): void {
  const { state } = record;
  if (state.kind === "retired") return;
  // What the configuration does not want counts on its own: its grace may be shorter.
  const counted = state.kind === "missing" && (state.reason === "config") === (reason === "config") ? state : null;
  if (counted?.countedIn === reading) return;
  const count = (counted?.count ?? 0) + 1;
  const agedMs = counted === null ? 0 : counted.agedMs + (counted.agedTo === null ? 0 : readableMs - counted.agedTo);
  const grace: Grace = reason === "config" ? rules.config : rules.missing;
  if (count >= grace.runs && agedMs >= grace.ms) {
    draft.put(spec, { ...record, stale: null, state: { kind: "retired", since: now, reason, why } });
    draft.tell("spec.retired", why, spec);
    return;
  }
  const since = counted?.since ?? now;
  draft.put(spec, {
    ...record,
    stale: null,
    state: { kind: "missing", since, reason, why, count, countedIn: reading, agedMs, agedTo: readableMs },
  });
  if (state.kind === "active") draft.tell("spec.missing", why, spec);
}

/** F5-5: a source that cannot be read. By default nothing becomes of that. */
function unreachable(
  draft: SourceDraft,
  { specs }: StoredSource,
  data: SourceData,
  observation: Observation,
  { rules, now, inUse }: ReconcileFacts,
): SourceData {
  const { firstFailureAt, consecutiveFailures } = data.health;
  const forMs = now - (firstFailureAt ?? now);
  const { onUnreachable, deleteAfterFailures } = rules;
  const isOver = (ms: number) => forMs >= Math.max(ms, leastUnreachableMs);
  const retires = onUnreachable.kind === "retire after" && isOver(onUnreachable.ms);
  const deletes = deleteAfterFailures !== null && consecutiveFailures >= deleteAfterFailures;
  if (retires || deletes)
    for (const [spec, record] of specs) {
      if (record.kind !== "service" || isFrozen(record) || record.state.kind === "retired") continue;
      // It was read in spite of all.
      if (observation.refs.has(spec)) continue;
      if (!retires && inUse.services.has(record.serviceId)) continue;
      const why = `the source could not be read ${consecutiveFailures} times in a row`;
      draft.put(spec, { ...record, state: { kind: "retired", since: now, reason: "unreachable", why } });
      draft.tell("spec.retired", why, spec);
    }
  return onUnreachable.kind === "hide after" && isOver(onUnreachable.ms) ? { ...data, hidden: true } : data;
}

/** Health and clocks after a reading. */
function afterReading(data: SourceData, observation: Observation, now: number): SourceData {
  const { completeness, refs } = observation;
  if (data.mode === "draining") return { ...data, ...readable(data, now) };
  const recent = `${data.health.recent}${completeness.charAt(0)}`.slice(-recentRuns);
  if (completeness === "failed") {
    const health: SourceHealth = {
      ...data.health,
      lastRunAt: now,
      consecutiveFailures: data.health.consecutiveFailures + 1,
      firstFailureAt: data.health.firstFailureAt ?? now,
      lastError: bounded(observation.error ?? "its list could not be read to its end"),
      recent,
    };
    return { ...data, health, readableAt: null };
  }
  const complete = completeness === "complete";
  // A list of which nothing at all could be read says as little as none.
  const something = complete || [...refs.values()].some(({ seen }) => seen.kind === "read" || seen.kind === "same");
  const health: SourceHealth = {
    lastRunAt: now,
    lastCompleteAt: complete ? now : data.health.lastCompleteAt,
    consecutiveFailures: 0,
    firstFailureAt: null,
    lastError: complete ? null : bounded(observation.error ?? "some of it could not be read"),
    recent,
  };
  const firstComplete = data.firstComplete ?? (something ? now : null);
  return { ...data, health, firstComplete, hidden: false, ...readable(data, now) };
}

function readable({ readableMs, readableAt }: SourceData, now: number): Pick<SourceData, "readableMs" | "readableAt"> {
  return { readableMs: readableMs + (readableAt === null ? 0 : Math.max(0, now - readableAt)), readableAt: now };
}

function tellHealth(draft: SourceDraft, before: SourceData, after: SourceData): void {
  const failed = (data: SourceData) => data.health.consecutiveFailures > 0;
  if (!failed(before) && failed(after)) draft.tell("source.failing", after.health.lastError ?? "");
  if (failed(before) && !failed(after))
    draft.tell("source.recovered", `after ${before.health.consecutiveFailures} failures`);
  if (!before.hidden && after.hidden) draft.tell("source.hidden", after.health.lastError ?? "");
  if (before.hidden && !after.hidden) draft.tell("source.shown", "it can be read again");
}

/**
 * Repositories of which nothing is offered because nobody gave them the tag: mostly somebody forgot to. It is told when their number is
 * another one, and not with every reading. One that has been offered and lost its tag is missing, which is told on its own.
 */
function tellUntagged(
  draft: SourceDraft,
  { data, specs }: StoredSource,
  { refs }: Observation,
): Pick<SourceData, "untagged"> {
  if (data.mode !== "active") return {};
  const lacking: ChannelRef[] = [];
  refs.forEach(({ ref, seen }, spec) => {
    if (ref.channel === "" && seen.kind === "absent" && specs.get(spec)?.kind !== "service") lacking.push(ref);
  });
  const untagged = lacking.length;
  if (untagged === (data.untagged ?? 0)) return {};
  if (untagged === 0) {
    draft.tell("source.untagged", "every repository has the tag that is read of it");
    return { untagged };
  }
  const tags = new Set(lacking.map(({ tag }) => tag));
  const [tag = ""] = tags;
  const lacked = tags.size === 1 && tag !== "" ? `the tag ${tag}` : "the tag that is read of them";
  const count = untagged === 1 ? "1 repository" : `${untagged} repositories`;
  const named = lacking.slice(0, untaggedNamed).map(({ repository }) => repository);
  const rest = untagged > named.length ? ", …" : "";
  draft.tell("source.untagged", bounded(`${count} without ${lacked}: ${named.join(", ")}${rest}`));
  return { untagged };
}

const untaggedNamed = 10;

const maxWhyLength = 500;
const maxProblems = 50;

/** What is kept of a text from outside. */
function bounded(text: string): string {
  return text.length <= maxWhyLength ? text : `${text.slice(0, maxWhyLength - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

function boundedProblems(problems: readonly SpecProblem[]): readonly SpecProblem[] {
  return problems.slice(0, maxProblems).map((problem) => ({ ...problem, message: bounded(problem.message) }));
}

function problemOf(message: string): SpecProblem {
  return { path: "", message, line: null, advice: false };
}

import {
  isWithdrawn,
  type RevisionPart,
  revisionPart,
  type ServiceRecord,
  type SpecRecord,
  type StoredSource,
  specOfRevision,
} from "./records.js";
import { draftOf, type SourceChange } from "./source-change.js";

export interface CollectRules {
  /** A spec that has been retired for so long, and a revision that has been superseded for so long: longer than any replica serves an old catalog (F5-48). */
  readonly retiredMs: number;
  /** Ids of what was deleted are remembered for so long. */
  readonly tombstoneMs: number;
  /** Of all that is removed in a pass. */
  readonly mostPerPass: number;
}

export const defaultCollectRules: CollectRules = {
  retiredMs: 60 * 60_000,
  tombstoneMs: 90 * 24 * 60 * 60_000,
  mostPerPass: 500,
};

/** What is kept of a source, with all its revisions, and when each was read. */
export interface CollectedSource extends StoredSource {
  readonly revisions: ReadonlyMap<RevisionPart, number>;
}

/** What might go: of these has to be known whether anything refers to them. An instance counts in whatever state it is (F5-55), and so does a running operation (F5-56). */
export interface Collectable {
  readonly services: readonly string[];
  readonly revisions: readonly RevisionPart[];
}

/** `unknown`: it could not be found out, or an instance of it cannot be read; that keeps this one and nothing else (F5-54). */
export type Use = "used" | "unused" | "unknown";

export interface Collection {
  readonly change: SourceChange;
  readonly deleted: readonly string[];
  readonly revisions: readonly RevisionPart[];
  readonly forgotten: readonly string[];
  /** Specs and revisions that are old enough and stay, with why. */
  readonly kept: readonly { readonly what: string; readonly why: string }[];
  /** There is more than one pass removes. */
  readonly more: boolean;
}

/**
 * What a pass of collection has to ask for. At most so many as it may remove: the next pass asks for the rest. Each pass begins where the
 * one before has ended: else those that are used for ever, and come first, would keep all others.
 */
export function collectable(source: CollectedSource, rules: CollectRules, now: number, pass = 0): Collectable {
  const { mostPerPass } = rules;
  const services = dueSpecs(source, rules, now).map(([, { serviceId }]) => serviceId);
  const revisions = dueRevisions(source, rules, now);
  return { services: turn(services, mostPerPass, pass), revisions: turn(revisions, mostPerPass, pass) };
}

/** So many of a list, the next ones with each pass, and after the last the first again. */
function turn<Item>(list: readonly Item[], size: number, pass: number): readonly Item[] {
  const turns = Math.max(1, Math.ceil(list.length / size));
  const from = (pass % turns) * size;
  return list.slice(from, from + size);
}

/**
 * What a pass removes (F5-53): specs that have retired long ago and have no instances, with all their revisions; revisions that nothing
 * refers to; ids that were remembered for long enough. What nobody has asked for stays. A dry run is this, and no commit.
 */
export function collect(
  source: CollectedSource,
  use: { readonly services: ReadonlyMap<string, Use>; readonly revisions: ReadonlyMap<RevisionPart, Use> },
  rules: CollectRules,
  now: number,
): Collection {
  const draft = draftOf(source);
  const deleted: string[] = [];
  const revisions: RevisionPart[] = [];
  const forgotten: string[] = [];
  const kept: { what: string; why: string }[] = [];
  let room = rules.mostPerPass;
  let more = false;
  const bySpec = groupBySpec(source.revisions.keys());

  for (const [spec, record] of dueSpecs(source, rules, now)) {
    const own = bySpec.get(spec) ?? [];
    const using = use.services.get(record.serviceId);
    // A running operation may hold a revision of a service that has no instance.
    const held = own.find((part) => (use.revisions.get(part) ?? "unused") !== "unused");
    if (using === "unused" && held === undefined) {
      if (room === 0) more = true;
      else {
        room -= 1;
        for (const part of own) draft.removeRevision(part);
        revisions.push(...own);
        deleted.push(spec);
        draft.tell("spec.deleted", "it had retired and nothing used it", spec);
        const { ref, serviceId, idFrom, knownPlans } = record;
        draft.put(spec, { kind: "deleted", ref, serviceId, idFrom, knownPlans, deletedAt: now });
      }
    } else if (using === undefined) more = true;
    else kept.push({ what: spec, why: using === "unused" ? whyKept("used") : whyKept(using) });
  }

  const dropped = new Map<string, Set<RevisionPart>>();
  const gone = new Set(revisions);
  for (const part of dueRevisions(source, rules, now)) {
    if (gone.has(part)) continue;
    const using = use.revisions.get(part);
    if (using === undefined) more = true;
    else if (using !== "unused") kept.push({ what: part, why: whyKept(using) });
    else if (room === 0) more = true;
    else {
      room -= 1;
      draft.removeRevision(part);
      revisions.push(part);
      const spec = specOfRevision(part);
      dropped.set(spec, (dropped.get(spec) ?? new Set()).add(part));
    }
  }
  for (const [spec, parts] of dropped) {
    const record = draft.spec(spec);
    if (record?.kind !== "service") continue;
    const history = record.history.filter(({ digest }) => !parts.has(revisionPart(spec, digest)));
    draft.put(spec, { ...record, history });
  }

  for (const [spec, record] of source.specs) {
    if (record.kind !== "deleted" || now - record.deletedAt < rules.tombstoneMs) continue;
    if (room === 0) more = true;
    else {
      room -= 1;
      forgotten.push(spec);
      draft.tell("spec.forgotten", "it was deleted long ago", spec);
      draft.put(spec, null);
    }
  }
  return { change: draft.finish(source.data), deleted, revisions, forgotten, kept, more };
}

/** What a person holds stays, and so does what a person has withdrawn: forgotten, the next reading would bring it back. */
function dueSpecs(
  { specs }: StoredSource,
  { retiredMs }: CollectRules,
  now: number,
): readonly (readonly [string, ServiceRecord])[] {
  const due: (readonly [string, ServiceRecord])[] = [];
  for (const [spec, record] of specs)
    if (
      record.kind === "service" &&
      record.state.kind === "retired" &&
      now - record.state.since >= retiredMs &&
      record.held === null &&
      !isWithdrawn(record)
    )
      due.push([spec, record]);
  return due;
}

/**
 * Not the current one, and superseded for long enough; and what belongs to no spec any more. None before its own time: it may have been
 * written for a spec that is about to name it, as processes of earlier versions do.
 */
function dueRevisions(
  { specs, revisions }: CollectedSource,
  { retiredMs }: CollectRules,
  now: number,
): readonly RevisionPart[] {
  const isDue = (part: RevisionPart, readAt: number) => {
    if (now - readAt < retiredMs) return false;
    const spec = specOfRevision(part);
    const record: SpecRecord | undefined = specs.get(spec);
    if (record?.kind !== "service") return record?.kind !== "deleted" || now - record.deletedAt >= retiredMs;
    return part !== revisionPart(spec, record.current.digest) && now - record.current.at >= retiredMs;
  };
  return [...revisions].flatMap(([part, readAt]) => (isDue(part, readAt) ? [part] : []));
}

function groupBySpec(parts: Iterable<RevisionPart>): ReadonlyMap<string, RevisionPart[]> {
  const groups = new Map<string, RevisionPart[]>();
  for (const part of parts) {
    const spec = specOfRevision(part);
    const group = groups.get(spec);
    if (group === undefined) groups.set(spec, [part]);
    else group.push(part);
  }
  return groups;
}

function whyKept(use: "used" | "unknown"): string {
  return use === "used" ? "something refers to it" : "it could not be found out whether something refers to it";
}

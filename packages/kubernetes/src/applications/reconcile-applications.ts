import { type GuardRuling, guardRemovals, type HeldRemoval, type Rules } from "@osbert/bundles";
import type { Finding } from "@osbert/protocol";
import type { Application, ApplicationKind } from "./application.js";
import {
  type ApplicationRecord,
  type CatalogData,
  type GrantRecord,
  grantPart,
  type KeptService,
  type StoredCatalog,
  wholeIds,
} from "./catalog-records.js";
import type { Grant } from "./grant.js";

/** What a process sees of the cluster now. */
export interface Seen {
  /** Kinds of which all was listed, a moment ago: only of these is something missing that is not seen. */
  readonly complete: {
    readonly applications: ReadonlySet<ApplicationKind>;
    readonly grants: ReadonlySet<ApplicationKind>;
  };
  /** Nothing more is to come before it counts as the whole. */
  readonly isSettled: boolean;
  readonly applications: Iterable<SeenApplication>;
  readonly grants: Iterable<SeenGrant>;
}

export interface SeenApplication {
  readonly kind: ApplicationKind;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  /** `null`: it is there, but nothing can be made of it. */
  readonly application: Application | null;
  readonly findings: readonly Finding[];
}

export interface SeenGrant {
  readonly grant: Grant;
  readonly generation: number;
  readonly findings: readonly Finding[];
}

export interface ReconcileRules {
  readonly guard: Rules["guard"];
  /** What was removed and has no instances is remembered for so long. */
  readonly retiredMs: number;
}

/** What is to become of what is kept. Nothing of it is done yet. */
export interface CatalogChange {
  /** To be written, by name. */
  readonly applications: ReadonlyMap<string, ApplicationRecord>;
  readonly grants: ReadonlyMap<string, GrantRecord>;
  /** Not seen any more, and let go by the guard: each is to be looked for once more before it is believed. */
  readonly missing: { readonly applications: readonly ApplicationRecord[]; readonly grants: readonly GrantRecord[] };
  /** With services that have been gone for long, or are too many: those of them that no instance has are forgotten. As they are to be written. */
  readonly expired: readonly ApplicationRecord[];
  readonly held: CatalogData["held"];
  readonly isKnown: boolean;
}

/**
 * From what is kept and what is seen to what is to be kept. Pure. `null`: nothing is to be written. What is seen of a resource that was newer
 * before comes from a process that lags behind, and changes nothing.
 */
export function reconcileApplications(
  stored: StoredCatalog,
  seen: Seen,
  { guard, retiredMs }: ReconcileRules,
  now: number,
): CatalogChange | null {
  const applications = new Map<string, ApplicationRecord>();
  const seenNames = new Map<string, ApplicationKind>();
  for (const each of inOrder(seen.applications, stored)) {
    if (seenNames.has(each.name)) continue;
    seenNames.set(each.name, each.kind);
    const before = stored.applications.get(each.name);
    if (before !== undefined && foundSame.get(each) === before) continue;
    const next = nextApplication(before, each, now);
    if (next === undefined) continue;
    if (!isSame(before, next)) applications.set(each.name, next);
    else if (before !== undefined) foundSame.set(each, before);
  }
  const grants = new Map<string, GrantRecord>();
  const seenGrants = new Set<string>();
  for (const { grant, generation, findings } of seen.grants) {
    const part = grantPart(grant);
    seenGrants.add(part);
    const before = stored.grants.get(part);
    if (before !== undefined && before.grant.uid === grant.uid && before.generation > generation) continue;
    const next = { grant, generation, findings };
    if (!isSame(before, next)) grants.set(part, next);
  }
  const present = [...stored.applications.values()].filter(({ removedAt }) => removedAt === null);
  const goneApplications = present.filter(({ application: { name, kind } }) => {
    // One of the other kind with the same name does not stand for it.
    return seen.complete.applications.has(kind) && seenNames.get(name) !== kind;
  });
  const goneGrants = [...stored.grants].filter(
    ([part, { grant }]) => seen.complete.grants.has(grant.kind) && !seenGrants.has(part),
  );
  const ruled = {
    applications: rule(
      goneApplications.map(({ application }) => application.name),
      present.length,
      stored.data.held.applications,
      guard,
      now,
    ),
    grants: rule(
      goneGrants.map(([part]) => part),
      stored.grants.size,
      stored.data.held.grants,
      guard,
      now,
    ),
  };
  const held = { applications: heldBy(ruled.applications, guard), grants: heldBy(ruled.grants, guard) };
  const missing = {
    applications: ruled.applications.kind === "go" ? goneApplications : [],
    grants: ruled.grants.kind === "go" ? goneGrants.map(([, record]) => record) : [],
  };
  const expired = [...stored.applications.values()]
    .map((record) => applications.get(record.application.name) ?? record)
    .filter((record) => isExpired(record, now - retiredMs));
  const isKnown = stored.data.isKnown || (seen.isSettled && seen.complete.applications.size > 0);
  const isUnchanged =
    applications.size + grants.size + missing.applications.length + missing.grants.length + expired.length === 0 &&
    isSame(held, stored.data.held) &&
    isKnown === stored.data.isKnown;
  return isUnchanged ? null : { applications, grants, missing, expired, held, isKnown };
}

/** What was seen and the record that says the same: while both are the objects that they were, megabytes are not compared with every news. */
const foundSame = new WeakMap<SeenApplication, ApplicationRecord>();

/** Of two kinds with one name, what was there first has it; of two that are new, Kyma's. */
function inOrder(seen: Iterable<SeenApplication>, { applications }: StoredCatalog): readonly SeenApplication[] {
  const rank = ({ kind, name }: SeenApplication) => {
    const before = applications.get(name);
    if (before !== undefined && before.removedAt === null && before.application.kind === kind) return 0;
    return kind === "kyma" ? 1 : 2;
  };
  return [...seen].sort((one, other) => rank(one) - rank(other) || compareTexts(one.name, other.name));
}

/** `undefined`: it stays as it was. */
function nextApplication(
  before: ApplicationRecord | undefined,
  { application, kind, uid, generation, findings }: SeenApplication,
  now: number,
): ApplicationRecord | undefined {
  const isSameObject = before?.removedAt === null && before.application.uid === uid;
  if (isSameObject && before.generation > generation) return undefined;
  // Of one that has become unreadable, what was offered stays.
  if (application === null) {
    const isKept = before !== undefined && before.removedAt === null && before.application.kind === kind;
    return isKept ? { ...before, findings } : undefined;
  }
  const { services, ...rest } = application;
  const isNew = before === undefined || before.removedAt !== null;
  const since = isNew ? now : before.since;
  const known = new Map(before?.services.map((kept) => [kept.service.id, kept]));
  const present = services.map((service): KeptService => {
    const kept = known.get(service.id);
    known.delete(service.id);
    return {
      service,
      since: kept === undefined || kept.removedAt !== null || isNew ? now : kept.since,
      removedAt: null,
    };
  });
  const removed = [...known.values()].map((kept) => removedService(kept, now));
  const formerIds = (before === undefined ? [] : wholeIds(before)).filter((id) => id !== rest.externalId);
  return {
    ...{ application: rest, generation, since, removedAt: null, services: [...present, ...removed], findings },
    ...(formerIds.length > 0 && { formerIds: formerIds.slice(0, mostFormerIds) }),
  };
}

const mostFormerIds = 20;

/** An application that is gone: its services stay known. */
export function removedApplication(record: ApplicationRecord, now: number): ApplicationRecord {
  return { ...record, removedAt: now, services: record.services.map((kept) => removedService(kept, now)) };
}

/**
 * So many services of an application are remembered that it does not offer any more; beyond them, only those that have instances: who forgets these can
 * never remove the instances.
 */
const mostRemoved = 500;
/** A journal keeps this much of an application, and a little more. */
const mostRecordBytes = 1_000_000;

/** What its instances need to be deleted, and no more. */
function removedService(kept: KeptService, now: number): KeptService {
  if (kept.removedAt !== null) return kept;
  const { id, name, events, apis } = kept.service;
  const [api] = apis;
  const nothing = { description: name, longDescription: null, provider: null, labels: {}, tags: [], parameters: null };
  const bare = { targetUrl: null, gatewayUrl: null, accessLabel: null, credentials: null, requestParameters: null };
  const service = {
    ...{ id, name, displayName: name, ...nothing, events },
    apis: api === undefined ? [] : [{ id: api.id, name: "", ...bare }],
  };
  return { service, since: kept.since, removedAt: now };
}

function isExpired(record: ApplicationRecord, before: number): boolean {
  return (record.removedAt !== null && record.services.length === 0) || expiredServices(record, before).length > 0;
}

/** Services that have been gone for long, and the oldest of those that are too many: they are forgotten, unless they have instances. */
export function expiredServices({ services }: ApplicationRecord, before: number): readonly KeptService[] {
  const latestLast = services
    .flatMap((kept) => (kept.removedAt === null ? [] : [{ kept, removedAt: kept.removedAt }]))
    .sort((one, other) => one.removedAt - other.removedAt);
  const tooMany = latestLast.length - mostRemoved;
  return latestLast.filter(({ removedAt }, at) => removedAt <= before || at < tooMany).map(({ kept }) => kept);
}

/** Without these services. `null`: nothing of it is left. */
export function without(record: ApplicationRecord, forgotten: ReadonlySet<KeptService>): ApplicationRecord | null {
  const services = record.services.filter((kept) => !forgotten.has(kept));
  return record.removedAt !== null && services.length === 0 ? null : { ...record, services };
}

/** What a journal can keep of it: if nothing else helps, without those services that have been gone for longest. */
export function keepable(record: ApplicationRecord): ApplicationRecord {
  let bytes = Buffer.byteLength(JSON.stringify(record));
  if (bytes <= mostRecordBytes) return record;
  const forgotten = new Set<KeptService>();
  for (const kept of [...record.services].sort((one, other) => (one.removedAt ?? 0) - (other.removedAt ?? 0))) {
    if (kept.removedAt === null) continue;
    if (bytes <= mostRecordBytes) break;
    forgotten.add(kept);
    bytes -= Buffer.byteLength(JSON.stringify(kept)) + 1;
  }
  return { ...record, services: record.services.filter((kept) => !forgotten.has(kept)) };
}

function rule(
  ids: readonly string[],
  active: number,
  before: HeldRemoval | null,
  guard: Rules["guard"],
  now: number,
): GuardRuling {
  const removals = ids.map((spec) => ({ spec, reason: "absent" }));
  const observation = { id: String(now), completeness: "complete" } as const;
  return guardRemovals(removals, active, { generation: "", guard: before }, observation, { guard }, now);
}

/** Readings beyond those that are asked for are not counted: each would be a commit. */
function heldBy(ruling: GuardRuling, { confirmRuns }: Rules["guard"]): HeldRemoval | null {
  return ruling.kind === "go" ? null : { ...ruling.guard, times: Math.min(ruling.guard.times, confirmRuns) };
}

function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

function compareTexts(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

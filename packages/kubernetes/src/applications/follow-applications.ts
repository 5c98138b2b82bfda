import { serviceUse } from "@osbert/broker";
import {
  type Journal,
  RetryLater,
  type TypedKind,
  type TypedOperation,
  type TypedOperationChange,
} from "@osbert/journal";
import type { Cluster } from "../cluster/cluster.js";
import { applicationKinds } from "./application-kinds.js";
import { type CatalogCopy, nextData } from "./catalog-copy.js";
import {
  type ApplicationRecord,
  applicationPart,
  byItself,
  type CatalogData,
  type CatalogShape,
  catalogKey,
  catalogKind,
  catalogResource,
  emptyCatalog,
  type GrantRecord,
  grantPart,
  type KeptService,
  type StoredCatalog,
  wholeIds,
} from "./catalog-records.js";
import {
  type CatalogChange,
  expiredServices,
  keepable,
  type ReconcileRules,
  reconcileApplications,
  removedApplication,
  without,
} from "./reconcile-applications.js";
import type { WatchedApplications } from "./watch-applications.js";

export interface FollowApplicationsPorts {
  readonly journal: () => Journal;
  readonly cluster: Cluster;
  readonly copy: () => CatalogCopy;
  /** `undefined`: this process does not watch (yet, or any more). */
  readonly watched: () => WatchedApplications | undefined;
  readonly rules: ReconcileRules;
  readonly told?: (change: AppliedChange) => void;
}

/** What a run has changed, for those who watch. */
export interface AppliedChange {
  readonly changed: readonly string[];
  readonly removed: readonly string[];
  readonly grants: number;
  readonly held: CatalogData["held"];
}

/** If nothing hurries it. */
const everyMs = 60_000;
const againMs = 2_000;
/** Then another operation goes on: a journal keeps all entries of one that is open, and this one would be for years. */
const renewedAfterMs = 24 * 60 * 60 * 1_000;

/**
 * The operation that keeps what was seen of applications: one process of all does it, at a time, by what it sees itself. The order of effects: what came
 * and changed is committed, some of it at a time; what is missing is looked for once more in the API server itself, one by one; what it says to be
 * gone is committed as removed. Killed in between, the next run sees the rest.
 */
export function followApplications(ports: FollowApplicationsPorts): TypedKind<CatalogShape, typeof catalogKind> {
  return {
    deadlineMs: null,
    run: (operation) => operation.poll("watching", ({ signal }) => followOnce(ports, operation, signal), { everyMs }),
    settle: (_catalog, _operation, { kind }) => ({
      accept: [{ kind: catalogKind, ...(kind !== "succeeded" && { delayMs: everyMs }) }],
    }),
  };
}

async function followOnce(
  ports: FollowApplicationsPorts,
  operation: TypedOperation<CatalogShape, typeof catalogKind>,
  signal: AbortSignal,
): Promise<null | undefined> {
  const watched = ports.watched();
  if (watched === undefined) throw new RetryLater("nothing is watched here", { afterMs: againMs });
  const copy = ports.copy();
  const stored = await copy.refresh();
  const { journal, rules } = ports;
  const now = journal().now();
  const change = reconcileApplications(stored, watched.seen, rules, now);
  if (change === null) return now - operation.acceptedAt >= renewedAfterMs ? null : undefined;
  const applied = await apply(ports, operation, stored, change, now, signal);
  await copy.refresh();
  tell(ports, applied);
  return undefined;
}

function tell({ told }: FollowApplicationsPorts, applied: AppliedChange): void {
  try {
    told?.(applied);
  } catch {
    // Whoever looks on does not break what he looks at.
  }
}

/** Whether a process that sees this has to wait for nobody: what has been gone for long can. */
export function isUrgent(change: CatalogChange | null, stored: StoredCatalog): boolean {
  if (change === null) return false;
  const { applications, grants, missing, held, isKnown } = change;
  return (
    applications.size + grants.size + missing.applications.length + missing.grants.length > 0 ||
    (held.applications === null) !== (stored.data.held.applications === null) ||
    (held.grants === null) !== (stored.data.held.grants === null) ||
    isKnown !== stored.data.isKnown
  );
}

/** There is an operation, and it looks now, in whichever process it runs. */
export async function hurryApplications(journal: Journal): Promise<void> {
  const decide = catalogResource.decide((resource) => {
    const [open] = resource?.open ?? [];
    const change =
      open === undefined
        ? { accept: [{ kind: catalogKind }] as const, ...(resource?.data == null && { data: emptyCatalog }) }
        : { hurry: [open.id] };
    return { result: null, change };
  });
  await journal.transact(catalogKey, decide, { by: byItself });
}

type Parts = NonNullable<TypedOperationChange<CatalogShape>["parts"]>;
type Record = ApplicationRecord | GrantRecord | null;

/** Of one commit. */
const mostParts = 200;
const mostBytes = 2_097_152;

async function apply(
  ports: FollowApplicationsPorts,
  operation: TypedOperation<CatalogShape, typeof catalogKind>,
  stored: StoredCatalog,
  change: CatalogChange,
  now: number,
  signal: AbortSignal,
): Promise<AppliedChange> {
  const { missing, isKnown } = change;
  let parts = new Map<string, Record>();
  const forgotten = await forget(ports, change, now);
  for (const [name, record] of forgotten) if (!change.applications.has(name)) parts.set(applicationPart(name), record);
  const replaced: ApplicationRecord[] = [];
  for (const [name, changed] of change.applications) {
    const record = keepable(forgotten.get(name) ?? changed);
    const before = stored.applications.get(name);
    const isReplaced =
      before !== undefined && (before.removedAt !== null || before.application.uid !== record.application.uid);
    if (isReplaced) replaced.push(record);
    else parts.set(applicationPart(name), record);
  }
  for (const [part, record] of change.grants) parts.set(part, record);
  let { data } = stored;
  // What the server has to be asked about does not hold up the rest, should it not answer.
  if (parts.size > 0 && replaced.length + missing.applications.length + missing.grants.length > 0) {
    data = await write(operation, data, parts, {}, now);
    parts = new Map();
  }
  // A process that lags behind may see one that is gone, or was replaced by what is kept.
  for (const record of replaced)
    if ((await uidOf(ports, record, signal)) === record.application.uid)
      parts.set(applicationPart(record.application.name), record);
  const removed: string[] = [];
  let removedGrants = 0;
  for (const record of missing.applications) {
    const { name } = record.application;
    if ((await uidOf(ports, record, signal)) !== null) continue;
    parts.set(applicationPart(name), keepable(removedApplication(record, now)));
    removed.push(name);
  }
  for (const { grant } of missing.grants) {
    const { kind, namespace, name } = grant;
    const found = await ports.cluster.read(applicationKinds[kind].grants, { namespace, name }, { signal });
    if (found !== undefined) continue;
    parts.set(grantPart(grant), null);
    removedGrants += 1;
  }
  // What a person has confirmed counts until it is done.
  const isDone = removed.length + removedGrants === missing.applications.length + missing.grants.length;
  const held = isDone ? change.held : stored.data.held;
  const isSameTold = JSON.stringify(held) === JSON.stringify(data.held) && isKnown === data.isKnown;
  if (parts.size > 0 || !isSameTold) await write(operation, data, parts, { held, isKnown }, now);
  return {
    changed: [...change.applications.keys()],
    ...{ removed, grants: change.grants.size + removedGrants, held },
  };
}

/** `null`: there is none of this name. */
async function uidOf(
  { cluster }: FollowApplicationsPorts,
  { application: { kind, name } }: ApplicationRecord,
  signal: AbortSignal,
): Promise<string | null> {
  const found = await cluster.read(applicationKinds[kind].applications, { namespace: "", name }, { signal });
  return found === undefined ? null : (found.metadata.uid ?? "");
}

async function forget({ journal, rules }: FollowApplicationsPorts, { expired }: CatalogChange, now: number) {
  const forgotten = new Map<string, ApplicationRecord | null>();
  const before = now - rules.retiredMs;
  for (const record of expired) {
    let isWholeUsed = false;
    for (const id of wholeIds(record)) isWholeUsed ||= await isUsed(journal(), id);
    // Whatever part of it an instance of the whole is of.
    if (isWholeUsed) continue;
    const unused = new Set<KeptService>();
    for (const kept of expiredServices(record, before))
      if (!(await isUsed(journal(), kept.service.id))) unused.add(kept);
    const next = without(record, unused);
    if (next === null || unused.size > 0) forgotten.set(record.application.name, next);
  }
  return forgotten;
}

async function isUsed(journal: Journal, serviceId: string): Promise<boolean> {
  return (await serviceUse(journal, serviceId, 1)).isUsed;
}

/** With each commit go the parts that it has changed; that all is known goes with the last. Answers what is kept then. */
async function write(
  operation: TypedOperation<CatalogShape, typeof catalogKind>,
  before: CatalogData,
  parts: ReadonlyMap<string, Record>,
  last: Partial<Pick<CatalogData, "held" | "isKnown">>,
  now: number,
): Promise<CatalogData> {
  let data = before;
  const bites = [...inBites(parts)];
  for (const [index, bite] of bites.entries()) {
    const expected = data.snapshot;
    const isLast = index === bites.length - 1;
    const changedAt = bite.size === 0 ? data.changedAt : now;
    const next = nextData(data, [...bite.keys()], { changedAt, ...(isLast && last) });
    await operation.change((resource) => {
      if ((resource.data?.snapshot ?? 0) !== expected) throw new RetryLater("it was changed meanwhile", { afterMs: 0 });
      return { data: next, parts: Object.fromEntries(bite) as Parts };
    });
    data = next;
  }
  return data;
}

function* inBites(parts: ReadonlyMap<string, Record>): Generator<ReadonlyMap<string, Record>> {
  let bite = new Map<string, Record>();
  let bytes = 0;
  for (const [id, record] of parts) {
    const size = JSON.stringify(record).length;
    if (bite.size > 0 && (bite.size >= mostParts || bytes + size > mostBytes)) {
      yield bite;
      bite = new Map();
      bytes = 0;
    }
    bite.set(id, record);
    bytes += size;
  }
  yield bite;
}

import { type Journal, RetryLater, type TypedKind, type TypedOperation } from "@osbert/journal";
import type { Catalog } from "@osbert/protocol";
import { answeredProbe, probePauseMs, wentDown } from "../decisions/broker-health.js";
import { hasRoomForLeft, leftPlans, withinLeftLimits } from "../decisions/left-plans.js";
import { catalogPages, nextCatalog } from "../decisions/next-catalog.js";
import {
  type BrokerData,
  type BrokerShape,
  brokerRecords,
  type KnownCatalog,
  type OfferingRecord,
} from "../records/broker-record.js";
import { type Breaker, healthEntry } from "./breaker.js";
import { type BrokerCopies, pageId } from "./broker-copies.js";
import { type CatalogReading, readCatalog } from "./read-catalog.js";
import { usedPlans } from "./used-plans.js";

export interface FollowBrokerPorts {
  readonly journal: () => Journal;
  readonly copies: BrokerCopies;
  readonly breaker: Breaker;
  /** The broker is in the index of all. */
  readonly announce: (name: string) => Promise<void>;
  readonly random: () => number;
}

type FollowOperation = TypedOperation<BrokerShape, "follow">;

/** Apart from the brokers' own lanes: it is what frees these. */
const followLane = "brokers";

/**
 * The operation that each broker has for as long as it is registered: it reads the catalog, keeps the lane as the broker's health wants it, and
 * sleeps. One process does it, another goes on when that dies.
 */
export function followBroker(ports: FollowBrokerPorts): TypedKind<BrokerShape, "follow"> {
  return {
    mode: "shared",
    lane: followLane,
    deadlineMs: null,
    run: (operation) =>
      operation.poll("reading", ({ signal, looks }) => followOnce(ports, operation, signal, looks), {
        everyMs: 60_000,
      }),
  };
}

/** Answers when there is nothing left to follow; throws RetryLater for the next reading. */
async function followOnce(
  ports: FollowBrokerPorts,
  operation: FollowOperation,
  signal: AbortSignal,
  looks: number,
): Promise<null> {
  const { breaker, copies } = ports;
  const journal = ports.journal();
  const data = brokerRecords.resource(await journal.read(operation.key))?.data;
  if (data === undefined || data.removed) return null;
  // Whoever registered it has done so, too, unless it was killed in between.
  await ports.announce(data.name);
  await breaker.keepLane(data);
  const reading = await readCatalog(copies.clientFor(data), {
    etag: data.catalog.revision === 0 ? null : data.catalog.etag,
    requestId: `${operation.id}.${looks}`,
    signal,
  });
  const after = await takeIn(ports, operation, data, reading);
  await breaker.keepLane(after);
  if (reading.kind === "failed") breaker.saw(data.name, reading.answer, reading.fault);
  throw new RetryLater("until the catalog is read again", { afterMs: pauseMs(ports, after, reading) });
}

function pauseMs(
  { breaker, random }: FollowBrokerPorts,
  { name, health, relistMs }: BrokerData,
  reading: CatalogReading,
): number {
  const failures = Math.max(health.failures, breaker.inARow(name));
  const ms =
    reading.kind === "failed" ? Math.min(relistMs, probePauseMs(failures, random())) : relistMs * (0.9 + random() / 5);
  return Math.max(ms, reading.retryAfterMs ?? 0);
}

/** Writes what was read. The data may be changed by others meanwhile: of theirs, nothing is lost. */
async function takeIn(
  { journal, copies }: FollowBrokerPorts,
  operation: FollowOperation,
  begun: BrokerData,
  reading: CatalogReading,
): Promise<BrokerData> {
  const now = journal().now();
  const known =
    reading.kind === "read" ? await keepCatalog(journal(), operation, begun, copies, reading.catalog, now) : undefined;
  let after = begun;
  await operation.change(({ data }) => {
    const read = catalogAfter(data.catalog, begun.asked, reading, known, now);
    // It was registered with another address meanwhile: the tag is that of the old one, and the new one may have the same.
    const catalog = data.url === begun.url ? read : { ...read, etag: null };
    const health = healthAfter(data, reading, now);
    after = { ...data, catalog, health };
    return {
      data: after,
      ...(known?.kind === "written" && { parts: Object.fromEntries(known.outdated.map((id) => [id, null])) }),
      entries: [
        ...(health.state === data.health.state ? [] : [healthEntry(health)]),
        ...(catalog.revision === data.catalog.revision ? [] : [catalogEntry(catalog)]),
        ...(catalog.fault === data.catalog.fault ? [] : [{ kind: "catalog-fault", payload: { fault: catalog.fault } }]),
      ],
    };
  });
  return after;
}

type Kept =
  | { readonly kind: "same" }
  | { readonly kind: "refused"; readonly fault: string }
  | {
      readonly kind: "written";
      readonly revision: number;
      readonly pages: number;
      readonly offerings: number;
      readonly outdated: readonly `page/${string}`[];
    };

/**
 * The pages of a new revision are written first, each in a commit of its own because together they may be many megabytes; the commit that
 * names the revision makes them count, and takes the old ones away. Killed before, nothing has changed, and the pages are written over.
 */
async function keepCatalog(
  journal: Journal,
  operation: FollowOperation,
  { name, catalog }: BrokerData,
  copies: BrokerCopies,
  read: Catalog,
  now: number,
): Promise<Kept> {
  await copies.follow(name);
  // Without what is kept, all that left would be forgotten.
  if (!(await copies.until(name, ({ catalog: copied }) => copied.revision >= catalog.revision, 10_000)))
    throw new RetryLater("what is kept of the catalog cannot be read now", { afterMs: 1_000 });
  const next = judge(copies.offerings(name), read, now);
  if (next.kind !== "changed") return next;
  const kept = hasRoomForLeft(next.offerings)
    ? next.offerings
    : withinLeftLimits(next.offerings, await usedPlans(journal, name, leftPlans(next.offerings)));
  const revision = catalog.revision + 1;
  const pages = catalogPages(kept);
  for (const [at, page] of pages.entries())
    await operation.change({ parts: brokerRecords.part(pageId(revision, at), page) });
  const { items } = await operation.partsUnder("page/", { limit: 1_000 });
  const own = new Set(pages.map((_, at) => pageId(revision, at)));
  const outdated = items.map(({ id }) => id).filter((id) => !own.has(id));
  const offerings = kept.filter(({ leftAt }) => leftAt === null).length;
  return { kind: "written", revision, pages: pages.length, offerings, outdated };
}

function judge(kept: readonly OfferingRecord[], read: Catalog, now: number): ReturnType<typeof nextCatalog> {
  try {
    return nextCatalog(kept, read, now);
  } catch (error) {
    // Recursion that found no end: the rules bound schemas, and metadata are the broker's own.
    if (error instanceof RangeError) return { kind: "refused", fault: "the catalog is nested too deep" };
    throw error;
  }
}

function catalogAfter(
  before: KnownCatalog,
  answered: number,
  reading: CatalogReading,
  known: Kept | undefined,
  now: number,
): KnownCatalog {
  if (reading.kind === "same") return { ...before, answered, readAt: now, fault: null };
  if (reading.kind !== "read") return { ...before, answered, fault: reading.fault };
  if (known?.kind === "refused") return { ...before, answered, fault: known.fault };
  const { etag } = reading;
  const same = { ...before, answered, etag, readAt: now, fault: null };
  if (known?.kind !== "written") return same;
  const { revision, pages, offerings } = known;
  return { ...same, revision, pages, offerings };
}

function healthAfter({ health }: BrokerData, reading: CatalogReading, now: number): BrokerData["health"] {
  if (reading.kind !== "failed") return answeredProbe(health, now);
  // One that is down already stays so, and is asked less and less often. Whether it is, is for the breaker to say.
  if (health.state !== "failing" && health.state !== "unauthorized") return health;
  return wentDown(health, reading.answer === "unauthorized" ? "unauthorized" : "failing", reading.fault, now);
}

function catalogEntry({ revision, offerings }: KnownCatalog): {
  readonly kind: string;
  readonly payload: { readonly revision: number; readonly offerings: number };
} {
  return { kind: "catalog-changed", payload: { revision, offerings } };
}

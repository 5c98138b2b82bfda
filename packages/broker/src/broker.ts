import {
  type Journal,
  type JournalEvent,
  type JournalOptions,
  observedStore,
  openJournal,
  type Store,
  type StoreAnswered,
  systemClock,
} from "@osbert/journal";
import { BrokerError, type Finding, parseApiVersion } from "@osbert/protocol";
import type { Readiness } from "@osbert/server";
import type { StderrLevel } from "@osbert/server/observe";
import { type Audit, archiveFor } from "./admin/audit.js";
import { KeyRotation } from "./admin/key-rotation.js";
import { Operator } from "./admin/operator.js";
import { Pauses } from "./admin/pauses.js";
import { AudienceCatalogs, type PublishedCatalog } from "./catalog/audience-catalogs.js";
import { type BuildOptions, buildService, type CatalogOptions } from "./catalog/built-service.js";
import { type BrokerCatalog, catalogWith, knownCatalog, retiring, unknownCatalog } from "./catalog/catalog.js";
import { buildCatalog, CatalogBuilder } from "./catalog/catalog-builder.js";
import { Offer } from "./catalog/offer.js";
import { droppedPlans, inUse, PlansInUseError } from "./catalog/plans-in-use.js";
import { type AdminRoutes, type Audience, isServiceSource, type ServiceSource } from "./catalog/service-source.js";
import { type Endpoints, endpointsOf } from "./endpoints/endpoints.js";
import { presentMetadata } from "./endpoints/present-metadata.js";
import { type BrokerBacklog, brokerBacklog } from "./observe/backlog.js";
import type { Observer } from "./observe/event.js";
import { StoreProbe } from "./observe/readiness.js";
import type { Tracing } from "./observe/tracing.js";
import { aroundOf, brokerEvent, type Watch, watchOf } from "./observe/watch.js";
import { type Cleanup, cleanupRule } from "./operations/cleanup.js";
import { operationKinds } from "./operations/operation-kinds.js";
import type { RunPorts } from "./operations/run-ports.js";
import { bindingPrefix } from "./records/binding-record.js";
import { addressOrKey } from "./records/instance-key.js";
import { instanceResource } from "./records/instance-resource.js";
import { neededToUndo } from "./records/undo.js";
import type { AsyncRules } from "./service/async-rule.js";
import type { Service } from "./service/service.js";

/** What a broker is made of: services and a store; everything else has a default. */
export interface BrokerOptions extends CatalogOptions {
  /** What is offered: a list, which `broker.offer` exchanges while the broker runs, or a source that changes by itself. */
  readonly services: readonly Service[] | ServiceSource;
  /** Where all of it is kept: `sqliteStore`, `postgresStore` and others of `@osbert/journal`. */
  readonly store: Store;
  /** For all services that do not say themselves. Default: asynchronously if the platform accepts that. */
  readonly async?: AsyncRules;
  /** How long a platform that does not accept an asynchronous answer is kept waiting. Default 50 seconds: they give up after 60. */
  readonly syncTimeoutMs?: number;
  /** The oldest version of the API that is answered. Default 2.13. */
  readonly minimumApiVersion?: string;
  /** A deprovision takes the bindings that are left along, instead of being refused. Default false. */
  readonly cascade?: boolean;
  /** Deleting what is not known answers 200 instead of 410. Default false. */
  readonly forceDeleteUnknown?: { readonly instances?: boolean; readonly bindings?: boolean };
  /** How many seconds platforms are advised to wait between polls. Default: as they like. */
  readonly retryAfterSeconds?: number;
  /** Schedules on which finished operations are forgotten. Default: succeeded ones after 30 days, failed ones after 90. */
  readonly cleanup?: Cleanup;
  /** Keeps what retention is about to remove from the journals. Default: it is removed. */
  readonly audit?: Audit;
  /** Told of everything that happens: `logTo` and `metrics` of `@osbert/broker/observe`, or your own. It cannot harm the broker. */
  readonly observe?: Observer | readonly Observer[];
  /**
   * What is written to standard error. Default: warnings and errors, such as a step that fails, the same ones gathered; nothing if
   * one of `observe` is a log (`logTo`).
   */
  readonly stderr?: StderrLevel;
  /** Spans around requests, operations and steps: `traces` of `@osbert/broker/observe`. */
  readonly tracing?: Tracing;
  /** Concurrency, retention, clock and what else the journal takes. */
  readonly journal?: Partial<Omit<JournalOptions, "store" | "kinds">>;
}

/** A complete broker, without a wire: `@osbert/broker/http` puts it on one. */
export interface Broker {
  /** Opens the store and begins to run what is due. Asked for twice, it starts once. One that could not be started may be started again. */
  start(): Promise<void>;
  /** Lets what runs end for so long, hands the rest over, closes the store. */
  stop(options?: { readonly drainMs?: number }): Promise<void>;
  /** What is offered now, checked and compiled. Throws while a source does not know that yet. */
  readonly catalog: BrokerCatalog;
  /** What a platform is told of it: all, unless the source of the services has an audience. Throws while that is not known yet. */
  catalogFor(platform: string): PublishedCatalog;
  /** Of the source of the services: which platforms there are, and what each sees. For the wire. */
  readonly audience: Audience | undefined;
  /** What the specification advises against, but allows; and where the catalog says less than the services. Watchers are told at start. */
  readonly warnings: readonly Finding[];
  /** The oldest version of the API that is answered. */
  readonly minimumApiVersion: { readonly major: number; readonly minor: number };
  /**
   * Offers other services from now on. Rejects with a CatalogError if they break the specification, and with a PlansInUseError if they
   * lack a plan that has instances; then all stays as it was. Confirmed, such a plan is retired: its instances stay operable. Those of
   * a service that is dropped as a whole can only be deleted, and after a restart not even that: its functions are not known then.
   * Rejects where the services come from a source: they are changed there.
   */
  offer(
    services: readonly Service[],
    options?: CatalogOptions & { readonly retirePlansInUse?: boolean },
  ): Promise<void>;
  /** Whether requests should be sent to this process: it has started, its store answers and takes writes, it is not about to stop. Takes two seconds at most. */
  readiness(): Promise<Readiness>;
  /** What is wrong with the store, for a person: it does not answer, or takes no writes. `null`: nothing is known. Takes two seconds at most. */
  storeTrouble(): Promise<string | null>;
  /** Says in `readiness` that the broker is about to stop, and changes nothing else: for load balancers that need a moment. */
  announceStop(): void;
  /** How much is open in all processes on the store, counted within bounds. */
  backlog(): Promise<BrokerBacklog>;
  /** Operations that run in this process. */
  readonly running: number;
  /** Who watches; `undefined` if nobody does. For the wire. */
  readonly watch: Watch | undefined;
  /** The endpoints. Throws until the broker has started. */
  readonly endpoints: Endpoints;
  /** The durable operations beneath. Throws until the broker has started. */
  readonly journal: Journal;
  /** Routes that the source of the services adds to the admin API. For the wire. */
  readonly adminRoutes: AdminRoutes | undefined;
  /** What an operator sees and does. Throws until the broker has started. */
  readonly operator: Operator;
}

const defaultSyncTimeoutMs = 50_000;
/** B6: for so long after its last operation was forgotten, a deleted instance is told from one that never was. */
const defaultGoneMs = 365 * 24 * 60 * 60 * 1_000;
/** A store that takes longer to answer is not one to send requests to. */
const readinessMs = 2_000;
/** A deprovision looks at so many bindings at a time. */
const bindingPage = 500;

/** Makes a broker of services. Throws a CatalogError, with every fault and its path, if what they offer breaks the specification. */
export function createBroker(options: BrokerOptions): Broker {
  const source = isServiceSource(options.services) ? options.services : undefined;
  const ofSource: BuildOptions = { ...options, areChecked: source?.servicesAreChecked ?? false };
  const ofSources = new CatalogBuilder(ofSource);
  const clock = options.journal?.clock ?? systemClock;
  const audiences = source?.audience && new AudienceCatalogs(source.audience);
  const offer = new Offer(
    isServiceSource(options.services) ? unknownCatalog : buildCatalog(options.services, options),
    source && ((serviceId, revision) => source.resolve(serviceId, revision)),
    clock,
    ofSource,
  );
  let running:
    | {
        readonly journal: Journal;
        readonly endpoints: Endpoints;
        readonly operator: Operator;
        readonly rotation: KeyRotation;
      }
    | undefined;
  let starting: Promise<void> | undefined;
  const minimumApiVersion = parseApiVersion(options.minimumApiVersion ?? "2.13");
  if (minimumApiVersion === undefined)
    throw new Error(`minimumApiVersion must look like "2.13", not ${JSON.stringify(options.minimumApiVersion)}`);
  const retention = {
    goneMs: defaultGoneMs,
    needed: neededToUndo,
    ...(options.cleanup && { goesAt: cleanupRule(options.cleanup) }),
    ...(options.audit && { archive: archiveFor(options.audit) }),
    ...options.journal?.retention,
  };
  const watch = watchOf(options, () => offer.catalog);
  const probe = new StoreProbe(options.store, readinessMs);
  let stopping = false;
  const started = () => {
    if (running === undefined) throw new BrokerError("unavailable", "the broker is starting", { retryAfterSeconds: 1 });
    return running;
  };
  const warn = (warnings: readonly Finding[]) => {
    for (const { path, message } of warnings) watch?.tell({ kind: "catalog warning", path, message });
  };
  const take = (next: BrokerCatalog) => {
    const known = new Set(offer.catalog.warnings.map(warningText));
    offer.replace(retiring(offer.catalog, next));
    warn(next.warnings.filter((warning) => !known.has(warningText(warning))));
  };
  /** What a source gives that cannot be offered is told, and what was offered before stays: it must not take the broker down. */
  const takeFromSource = (from: ServiceSource) => {
    if (from.services === undefined) return;
    take(catalogWith(ofSources.build(from.services), { changedAt: from.changedAt ?? null }));
  };
  const followSource = () => {
    try {
      if (source !== undefined) takeFromSource(source);
    } catch (error) {
      watch?.tell({ kind: "catalog refused", error });
    }
  };
  let sourceIsOpen = false;
  const closeSource = () => {
    if (!sourceIsOpen) return;
    sourceIsOpen = false;
    source?.close();
  };
  const bindingsOf = async (key: string) =>
    instanceResource.partsUnder(
      bindingPrefix,
      await started().journal.parts(key, bindingPrefix, { limit: bindingPage }),
    ).items;
  const open = async () => {
    stopping = false;
    const ports: RunPorts = {
      serviceOf: (serviceId, revision) => offer.serviceOf(serviceId, revision),
      catalog: () => offer.catalog,
      judge: source?.judge,
      now: () => started().journal.now(),
      bindingsOf,
      passedOver: (key, operation, calls) =>
        watch?.tell({ kind: "passed over", ...addressOrKey(key), operation, calls }),
    };
    const kinds = operationKinds(ports, source?.kinds);
    const watched = watching(options, watch, probe, (event) => tellGone(source, event));
    const journal = await openJournal({ ...options.journal, ...watched, retention, kinds });
    // Before the first operation can begin.
    const pauses = await Pauses.of(journal).catch((error: unknown) => giveUp(journal, error));
    const cascade = options.cascade ?? false;
    const rotation = new KeyRotation(options.store);
    const catalogOf = (serviceId: string, revision: string | null) =>
      offer.catalogOf(serviceId, revision).catch(cannotTell);
    const operator = new Operator({ journal, catalog: () => offer.catalog, catalogOf, pauses, cascade, rotation });
    const endpoints = endpointsOf({
      journal,
      catalog: () => offer.catalog,
      catalogOf,
      hasRevisions: source !== undefined,
      judge: source?.judge,
      presentMetadata: presentMetadata(source, clock),
      async: options.async ?? {},
      syncTimeoutMs: options.syncTimeoutMs ?? defaultSyncTimeoutMs,
      cascade,
      forceDeleteUnknown: { instances: false, bindings: false, ...options.forceDeleteUnknown },
      retryAfterSeconds: options.retryAfterSeconds ?? null,
      isPaused: (serviceId) => pauses.of(serviceId) !== undefined,
    });
    try {
      // Before the first operation can begin, too.
      sourceIsOpen = source !== undefined;
      await source?.open({
        journal,
        check: (services) => void buildCatalog(services, { ...ofSource, areNew: true }),
        prepare: (services) => {
          for (const service of services) buildService(service, ofSource);
        },
        changed: followSource,
      });
      followSource();
      running = { journal, endpoints, operator, rotation };
      if (source === undefined) warn(offer.catalog.warnings);
      await journal.start();
    } catch (error) {
      running = undefined;
      closeSource();
      await giveUp(journal, error);
    }
  };
  return {
    start() {
      starting ??= open().catch((error: unknown) => {
        starting = undefined;
        throw error;
      });
      return starting;
    },
    async stop(how) {
      stopping = true;
      await starting?.catch(() => undefined);
      running?.rotation.end();
      await running?.journal.stop(how);
      // What drains may still need what it was made of.
      closeSource();
      starting = undefined;
    },
    async readiness() {
      const state = stopping ? "the broker is stopping" : running === undefined ? "the broker is starting" : null;
      // A store that is not open, or not any more, is not asked.
      const reason = state ?? (await this.storeTrouble());
      return reason === null ? { ready: true, reasons: [] } : { ready: false, reasons: [reason] };
    },
    async storeTrouble() {
      const { journal } = started();
      return probe.trouble({ write: () => writeSomething(journal) });
    },
    announceStop() {
      stopping = true;
    },
    async backlog() {
      return brokerBacklog(await started().journal.backlog(), offer.catalog);
    },
    get running() {
      return running?.journal.running ?? 0;
    },
    watch,
    async offer(services, { retirePlansInUse = false, ...said } = {}) {
      if (source !== undefined) throw new Error("the services of this broker come from a source: change them there");
      const next = buildCatalog(services, { ...options, ...said });
      const dropped = droppedPlans(offer.catalog, next);
      if (running !== undefined && !retirePlansInUse && dropped.length > 0) {
        // An instance that is made in the moment between this look and the change has a retired plan, and stays operable.
        const used = await inUse(running.journal, dropped);
        if (used.length > 0) throw new PlansInUseError(used);
      }
      take(next);
    },
    get catalog() {
      return knownCatalog(offer.catalog);
    },
    catalogFor(platform) {
      const catalog = knownCatalog(offer.catalog);
      return audiences === undefined ? catalog : audiences.of(platform, catalog);
    },
    audience: source?.audience,
    get warnings() {
      return offer.catalog.warnings;
    },
    minimumApiVersion,
    adminRoutes: source?.admin,
    get endpoints() {
      return started().endpoints;
    },
    get journal() {
      return started().journal;
    },
    get operator() {
      return started().operator;
    },
  };
}

/** Nobody stops what did not start: the store is left to whoever tries next. */
async function giveUp(journal: Journal, error: unknown): Promise<never> {
  await journal.stop({ drainMs: 0 });
  throw error;
}

/** A request that needs a revision which its source cannot tell now. */
function cannotTell(cause: unknown): never {
  if (cause instanceof BrokerError) throw cause;
  const words = "what the instance was made of cannot be told now; ask again later";
  throw new BrokerError("unavailable", words, { cause, retryAfterSeconds: 5 });
}

function warningText({ path, message }: Finding): string {
  return `${path} ${message}`;
}

/** Not the key of any instance: those have a slash. */
const probeKey = "broker.readiness";
/** About what an operation takes. */
const probeText = "x".repeat(32_768);

/** What it leaves is gone with the next pruning. */
async function writeSomething(journal: Journal): Promise<void> {
  const change = { data: null, entries: [{ kind: "readiness", payload: probeText }], gone: true };
  const by = { actor: { type: "system", subject: "readiness" } } as const;
  await journal.transact(probeKey, () => ({ result: null, change }), { by, timeoutMs: readinessMs });
}

function tellGone(source: ServiceSource | undefined, event: JournalEvent): void {
  if (event.kind !== "settled" || event.operationKind !== "deprovision" || event.outcome !== "succeeded") return;
  const { service } = event.labels;
  if (service !== undefined) source?.instanceGone?.(service);
}

/**
 * The store, and what the journal is given so that it can be watched. An observer of the journal alone is told, too. Calls of the store
 * are looked at one by one only if someone wants to measure them.
 */
function watching(
  { store, journal }: BrokerOptions,
  watch: Watch | undefined,
  probe: StoreProbe,
  besides: (event: JournalEvent) => void,
): Pick<JournalOptions, "store" | "observe" | "around"> {
  const noticed = (event: JournalEvent) => {
    probe.noticeEvent(event);
    besides(event);
    journal?.observe?.(event);
  };
  if (watch === undefined) return { store, observe: noticed };
  const { tell, needs, tracing, measuresStore, catalog } = watch;
  const heard = (event: StoreAnswered) => {
    probe.notice(event);
    tell(event);
  };
  return {
    store: measuresStore ? observedStore(store, heard) : store,
    observe: (event) => {
      if (needs(event)) tell(brokerEvent(event, catalog()));
      noticed(event);
    },
    ...(tracing !== undefined && { around: aroundOf(tracing, catalog) }),
  };
}

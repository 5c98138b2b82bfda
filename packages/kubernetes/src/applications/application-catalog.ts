import { createHash } from "node:crypto";
import { defaultRules } from "@osbert/bundles";
import { type Attribution, type Journal, type OperationKinds, systemClock } from "@osbert/journal";
import type { Cluster, WatchState } from "../cluster/cluster.js";
import type { Application, ApplicationKind } from "./application.js";
import type { Applications, ApplicationsChange } from "./applications.js";
import { CatalogCopy, nextData } from "./catalog-copy.js";
import {
  type ApplicationRecord,
  type CatalogData,
  catalogKey,
  catalogKind,
  catalogResource,
  type GrantRecord,
  presentServices,
  type StoredCatalog,
  wholeIds,
} from "./catalog-records.js";
import { type AppliedChange, followApplications, hurryApplications, isUrgent } from "./follow-applications.js";
import {
  type CatalogMapping,
  keptOffer,
  type Offer,
  offerApplications,
  type PlanContent,
  type ServiceOffer,
} from "./offer-applications.js";
import { type ReconcileRules, reconcileApplications } from "./reconcile-applications.js";
import { type WatchedApplications, watchApplications } from "./watch-applications.js";
import type { FoundService } from "./wiring.js";

export interface ApplicationCatalogOptions {
  readonly cluster: Cluster;
  readonly mapping: CatalogMapping;
  readonly kinds?: readonly ApplicationKind[];
  readonly secretNamespace: string;
  readonly rules?: Partial<ReconcileRules>;
  /** Told of what the operation has changed, in the process that ran it. */
  readonly told?: (change: AppliedChange) => void;
}

/** Changes that come together are looked at together. */
const gatherMs = 200;
/** After the journal did not answer. */
const againMs = 2_000;
const defaultRetiredMs = 24 * 60 * 60 * 1_000;

/**
 * What is offered of applications, and to whom: as all processes have it from the journal, where the one that runs the operation writes what it
 * sees. So it is known after a restart, whatever the API server says.
 */
export class ApplicationCatalog implements Applications {
  readonly operations: OperationKinds;
  readonly #options: ApplicationCatalogOptions;
  readonly #rules: ReconcileRules;
  readonly #listeners = new Set<(change: ApplicationsChange) => void>();
  #journal: Journal | undefined;
  #copy: CatalogCopy | undefined;
  #watched: WatchedApplications | undefined;
  #offerChanged: () => void = () => undefined;
  #index: Index = emptyIndex;
  #callOff: (() => void) | undefined;

  constructor(options: ApplicationCatalogOptions) {
    this.#options = options;
    this.#rules = { guard: defaultRules.guard, retiredMs: defaultRetiredMs, ...options.rules };
    this.operations = catalogResource.kinds({
      [catalogKind]: followApplications({
        journal: () => this.#opened().journal,
        copy: () => this.#opened().copy,
        watched: () => this.#watched,
        cluster: options.cluster,
        rules: this.#rules,
        ...(options.told !== undefined && { told: options.told }),
      }),
    });
  }

  /** `changed`: what is offered is another, or to somebody else. */
  async open(journal: Journal, changed: () => void): Promise<void> {
    const copy = new CatalogCopy(journal, (before) => this.#takeIn(before));
    this.#journal = journal;
    this.#copy = copy;
    this.#offerChanged = changed;
    await copy.open();
    const { cluster, kinds, secretNamespace } = this.#options;
    this.#watched = watchApplications(cluster, {
      ...(kinds !== undefined && { kinds }),
      secretNamespace,
      changed: () => this.#gather(gatherMs),
    });
    await hurryApplications(journal);
  }

  close(): void {
    this.#callOff?.();
    this.#callOff = undefined;
    this.#watched?.close();
    this.#copy?.close();
    this.#watched = undefined;
    this.#copy = undefined;
    this.#journal = undefined;
    this.#listeners.clear();
  }

  get state(): WatchState {
    const { state = "starting" } = this.#watched ?? {};
    return state === "current" && !this.stored.data.isKnown ? "starting" : state;
  }

  /** Why it is not current, for a person. */
  get why(): string | null {
    return this.#watched?.why ?? null;
  }

  get stored(): StoredCatalog {
    return this.#copy?.stored ?? emptyIndex.stored;
  }

  /** `undefined`: that is not known yet. */
  get offer(): Offer | undefined {
    return this.stored.data.isKnown ? this.#index.offer : undefined;
  }

  application(name: string): Application | undefined {
    const record = this.stored.applications.get(name);
    return record === undefined || record.removedAt !== null ? undefined : presentApplication(record);
  }

  service(id: string): ReturnType<Applications["service"]> {
    const application = this.application(this.#index.owners.get(id)?.name ?? "");
    const service = application?.services.find((each) => each.id === id);
    return application === undefined || service === undefined ? undefined : { application, service };
  }

  isGranted(namespace: string, application: string, serviceId: string): boolean {
    const kind = this.stored.applications.get(application)?.application.kind;
    return (this.#index.grants.get(namespace)?.records ?? []).some(
      ({ grant }) =>
        grant.application === application &&
        grant.kind === kind &&
        (grant.services === null || grant.services.includes(serviceId)),
    );
  }

  hasGrants(namespace: string): boolean {
    return this.#index.grants.has(namespace);
  }

  /** Changes with who may have what in a namespace. */
  grantsVersion(namespace: string): string {
    return this.#index.grants.get(namespace)?.version ?? "none";
  }

  /** What an instance of a plan is of, as far as it was ever offered and is kept. */
  content(serviceId: string, planId: string): PlanContent | undefined {
    return this.#index.contents.get(contentKey(serviceId, planId));
  }

  found(content: PlanContent): FoundService | undefined {
    const record = this.stored.applications.get(content.application);
    const kept = record?.services.find(({ service }) => service.id === content.service);
    if (record === undefined || kept === undefined) return undefined;
    const { events, apis } = content;
    return {
      application: presentApplication(record),
      service: kept.service,
      plan: { events, apis },
      isOffered: record.removedAt === null && kept.removedAt === null,
    };
  }

  /** A service as its instances know it, also after it is gone. */
  kept(serviceId: string, revision: string): ServiceOffer | undefined {
    for (const name of this.#index.applicationsOf.get(serviceId) ?? []) {
      const record = this.stored.applications.get(name);
      const offer = record && keptOffer(record, serviceId, revision);
      if (offer !== undefined) return offer;
    }
    return undefined;
  }

  /** Whether anything is known of a service of the broker, offered or not. */
  knows(serviceId: string): boolean {
    return this.#index.applicationsOf.has(serviceId);
  }

  /** A person says that what is held may go. `undefined`: it is done; else why not. */
  async confirm(what: keyof CatalogData["held"], observation: string, by: Attribution): Promise<string | undefined> {
    const { journal } = this.#opened();
    const decide = catalogResource.decide((resource, now) => {
      const data = resource?.data;
      const held = data?.held[what] ?? null;
      if (data === undefined || held === null) return { result: `no removal of ${what} is held` };
      if (held.observation !== observation)
        return { result: `what is held of ${what} is ${held.observation}, and not ${observation}; look at it again` };
      if (held.confirmed !== null) return { result: `this removal was confirmed already, by ${held.confirmed.by}` };
      const confirmed = { ...held, confirmed: { by: by.actor.subject, at: now } };
      const next = nextData(data, [], { held: { ...data.held, [what]: confirmed } });
      return { result: undefined, change: { data: next, hurry: (resource?.open ?? []).map(({ id }) => id) } };
    });
    return (await journal.transact(catalogKey, decide, { by })).result;
  }

  onChange(listener: (change: ApplicationsChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #opened() {
    if (this.#journal === undefined || this.#copy === undefined) throw new Error("event services are not open");
    return { journal: this.#journal, copy: this.#copy };
  }

  #tell(change: ApplicationsChange): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch {
        // Whoever listens does not break what he listens to.
      }
    }
  }

  #takeIn(before: StoredCatalog): void {
    const { stored } = this;
    this.#index = indexOf(stored, this.#options.mapping);
    this.#offerChanged();
    for (const name of differing(before.applications, stored.applications))
      this.#tell({ kind: "application", application: name });
    for (const part of differing(before.grants, stored.grants)) {
      const { namespace, application } = (stored.grants.get(part) ?? (before.grants.get(part) as GrantRecord)).grant;
      this.#tell({ kind: "grants", namespace, application });
    }
    if (before.data.isKnown !== stored.data.isKnown) this.#tell({ kind: "state" });
    // What was seen while this was not known may be more than this.
    this.#gather(gatherMs);
  }

  #gather(afterMs: number): void {
    if (this.#callOff !== undefined || this.#watched === undefined) return;
    this.#callOff = systemClock.after(afterMs, () => {
      this.#callOff = undefined;
      void this.#look();
    });
  }

  /** Whether what this process sees is something new; then whoever runs the operation is to look, too. */
  async #look(): Promise<void> {
    const [watched, journal] = [this.#watched, this.#journal];
    if (watched === undefined || journal === undefined) return;
    this.#tell({ kind: "state" });
    try {
      const change = reconcileApplications(this.stored, watched.seen, this.#rules, journal.now());
      if (isUrgent(change, this.stored)) await hurryApplications(journal);
    } catch {
      this.#gather(againMs);
    }
  }
}

interface Index {
  readonly stored: StoredCatalog;
  readonly offer: Offer;
  /** Who has an id of an application's service. */
  readonly owners: ReadonlyMap<string, { readonly name: string; readonly since: number }>;
  readonly contents: ReadonlyMap<string, PlanContent>;
  /** By the id of a service of the broker, offered or not: those that are there come first. */
  readonly applicationsOf: ReadonlyMap<string, readonly string[]>;
  readonly grants: ReadonlyMap<string, { readonly records: readonly GrantRecord[]; readonly version: string }>;
}

const emptyIndex: Index = {
  stored: {
    data: { snapshot: 0, changedAt: 0, isKnown: false, held: { applications: null, grants: null }, recent: [] },
    applications: new Map(),
    grants: new Map(),
  },
  offer: { services: [], findings: [] },
  owners: new Map(),
  contents: new Map(),
  applicationsOf: new Map(),
  grants: new Map(),
};

function indexOf(stored: StoredCatalog, mapping: CatalogMapping): Index {
  const offer = offerApplications(stored.applications.values(), mapping);
  const owners = new Map<string, { name: string; since: number }>();
  const contents = new Map<string, PlanContent>();
  const applicationsOf = new Map<string, string[]>();
  const records = [...stored.applications.values()].sort(firstThere);
  for (const record of records) {
    const { name, kind } = record.application;
    for (const { service, since } of presentServices(record)) {
      const owner = owners.get(service.id);
      if (owner === undefined || since < owner.since) owners.set(service.id, { name, since });
    }
    const known = (serviceId: string, revision: string) => {
      const names = applicationsOf.get(serviceId) ?? [];
      applicationsOf.set(serviceId, names.includes(name) ? names : [...names, name]);
      for (const { id, content } of keptOffer(record, serviceId, revision)?.plans ?? []) {
        const key = contentKey(serviceId, id);
        if (!contents.has(key)) contents.set(key, content);
      }
    };
    for (const { service, removedAt } of record.services) {
      const [own, other] = kind === "kyma" ? ["services-1", "own-1"] : ["own-1", "services-1"];
      known(service.id, own);
      // It may be of a time when the other kind described the application.
      if (removedAt !== null) known(service.id, other);
    }
    for (const id of wholeIds(record)) known(id, "applications-1");
  }
  // What is offered is what its instances are of, whoever else had the id, or wants it.
  for (const { id, plans } of offer.services)
    for (const { id: planId, content } of plans) {
      contents.set(contentKey(id, planId), content);
      owners.set(content.service, { name: content.application, since: 0 });
    }
  return { stored, offer, owners, contents, applicationsOf, grants: grantsOf(stored) };
}

function grantsOf({ grants }: StoredCatalog): Index["grants"] {
  const byNamespace = new Map<string, GrantRecord[]>();
  for (const part of [...grants.keys()].sort()) {
    const record = grants.get(part) as GrantRecord;
    const { namespace } = record.grant;
    const records = byNamespace.get(namespace);
    if (records === undefined) byNamespace.set(namespace, [record]);
    else records.push(record);
  }
  return new Map(
    [...byNamespace].map(([namespace, records]) => {
      const granted = records.map(({ grant: { kind, application, services } }) => [kind, application, services]);
      const version = createHash("sha256").update(JSON.stringify(granted)).digest("base64url");
      return [namespace, { records, version }] as const;
    }),
  );
}

function firstThere(one: ApplicationRecord, other: ApplicationRecord): number {
  const gone = ({ removedAt }: ApplicationRecord) => (removedAt === null ? 0 : 1);
  return gone(one) - gone(other) || one.since - other.since || (one.application.name < other.application.name ? -1 : 1);
}

const presentApplications = new WeakMap<ApplicationRecord, Application>();

function presentApplication(record: ApplicationRecord): Application {
  const known = presentApplications.get(record);
  if (known !== undefined) return known;
  const application = { ...record.application, services: presentServices(record).map(({ service }) => service) };
  presentApplications.set(record, application);
  return application;
}

function contentKey(serviceId: string, planId: string): string {
  return JSON.stringify([serviceId, planId]);
}

function differing<Value>(one: ReadonlyMap<string, Value>, other: ReadonlyMap<string, Value>): readonly string[] {
  return [...new Set([...one.keys(), ...other.keys()])].filter((key) => one.get(key) !== other.get(key));
}

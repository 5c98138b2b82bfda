import type { AdminRoutes, Service, ServiceJudge, ServiceSource, ServiceSourcePorts } from "@osbert/broker";
import type { Attribution, Journal, OperationKinds } from "@osbert/journal";
import { tellAll } from "@osbert/server/observe";
import { bundleAdmin } from "../admin/bundle-admin.js";
import type { PreviewView } from "../admin/views.js";
import type { AdminDecision, Decider } from "../reconcile/admin-decisions.js";
import type { Collection } from "../reconcile/collect.js";
import { revisionPart, type StoredSource, sourceKey } from "../reconcile/records.js";
import type { SourceChange } from "../reconcile/source-change.js";
import type { Digest } from "../sources/source.js";
import type { BundleEvent } from "../watch/bundle-event.js";
import { askForReading } from "./ask-for-reading.js";
import { bundleAdminPorts } from "./bundle-admin-ports.js";
import type { BundleServicesOptions } from "./bundle-services-options.js";
import type { BundleSource } from "./bundle-source.js";
import { askForCollection } from "./collect-sources.js";
import { ConfiguredSources, checkNames, rankOf } from "./configured-sources.js";
import { decideSource } from "./decide-source.js";
import { HurryUnread } from "./hurry-unread.js";
import { judgeRequests } from "./judge-requests.js";
import { keptSources, neighbouringRevisions, readNamed, readRevisions } from "./kept-sources.js";
import { OfferedBundles } from "./offered-bundles.js";
import { OfferedCatalog } from "./offered-catalog.js";
import { OneAtATime } from "./one-at-a-time.js";
import type { OperatorSecret } from "./operator-secrets.js";
import { previewSources } from "./preview-sources.js";
import { SourceCopies } from "./source-copies.js";
import { type SourceOperations, sourceOperations } from "./source-operations.js";
import { SourceReadings } from "./source-readings.js";
import { byItself } from "./source-resource.js";
import { type TellSources, tellSources } from "./tell-sources.js";
import { ThisMachine } from "./this-machine.js";

/** Services that come from sources of bundles, for `createBroker`. */
export interface BundleServices extends ServiceSource {
  /** What is stored of each source, by the name that it has now. */
  sources(): ReadonlyMap<string, StoredSource>;
  /**
   * Has a source read now, by whichever process follows it. Answers the id of the reading that sees what there is now, as observations have it
   * (F5-73). `undefined`: there is no such source.
   */
  refresh(source: string, by: Attribution): Promise<string | undefined>;
  /** Carries out what a person has decided about a source. `undefined`: there is no such source. */
  decide(
    source: string,
    decision: (stored: StoredSource, decider: Decider) => AdminDecision,
    by: Attribution & { readonly why: string },
  ): Promise<AdminDecision | undefined>;
  /**
   * Other secrets for bundles, from the next action on. What they hide is hidden in the catalog at once. Those with a problem are thrown, and
   * nothing has changed then.
   */
  exchangeSecrets(secrets: readonly OperatorSecret[]): Promise<void>;
  /**
   * From now on the sources are these. What left drains, what changed is read with its new settings, what is the same goes on. Rejects, and
   * those before hold, if the journal does not answer.
   */
  configure(sources: readonly BundleSource[]): Promise<void>;
  /** What would become of each source if these were configured now. They are read; nothing is written. */
  preview(sources: readonly BundleSource[]): Promise<readonly PreviewView[]>;
  /** What the next pass of collection would remove of each source, and what it would keep, with why. Nothing is written. */
  collectable(): Promise<ReadonlyMap<string, Collection>>;
}

/**
 * A source of services for `createBroker`: each source of bundles is a resource of the broker's journal, with an operation that follows
 * it. Every process has a copy of what is stored of each, and makes the same catalog of them.
 */
export function bundleServices(options: BundleServicesOptions): BundleServices {
  return new Bundles(options);
}

class Bundles implements BundleServices {
  readonly kinds: OperationKinds;
  /** Those of bundles when they were read (F5-82), those in code when this was made. */
  readonly servicesAreChecked = true;
  readonly admin: AdminRoutes;
  readonly judge: ServiceJudge;
  readonly #options: BundleServicesOptions;
  readonly #tellSources: TellSources;
  readonly #copies: SourceCopies;
  readonly #configured: ConfiguredSources;
  readonly #readings = new SourceReadings(() => this.#journal().now());
  readonly #machine: ThisMachine;
  readonly #offered: OfferedBundles;
  readonly #catalog: OfferedCatalog;
  readonly #building = new OneAtATime(() => this.#build());
  readonly #operations: SourceOperations;
  readonly #hurryUnread = new HurryUnread({
    journal: () => this.#journal(),
    neverRead: () => this.#configured.neverRead(),
  });
  /** Those that were last configured, or are to begin with. */
  #wanted: readonly BundleSource[];
  #configuring: Promise<unknown> = Promise.resolve();
  #ports: ServiceSourcePorts | undefined;
  #isOpen = false;

  constructor(options: BundleServicesOptions) {
    checkNames(options.sources);
    this.#options = options;
    this.#wanted = options.sources;
    const { observe = [] } = options;
    const tell = tellAll<BundleEvent>(typeof observe === "function" ? [observe] : observe);
    const journal = () => this.#journal();
    this.#copies = new SourceCopies({
      journal,
      changed: async (key) => {
        await this.#configured.claim(key);
        await this.#building.run();
      },
      notTakenIn: (key, error) => this.#tellSources.notTakenIn(key, error),
    });
    this.#configured = new ConfiguredSources({
      journal,
      stored: (key) => this.#copies.stored(key),
      decide: (key, decision, by) => this.#decide(key, decision, by),
    });
    this.#tellSources = tellSources({
      tell,
      nameOf: (key) => this.#configured.nameOf(key),
      stored: (key) => this.#copies.stored(key),
      now: () => journal().now(),
    });
    this.#machine = new ThisMachine({
      ...{ journal, options, tell },
      source: (identityName) => this.#configured.sourceOf(identityName),
      nameOf: (identityName) => this.#configured.nameOf(sourceKey(identityName)),
      entries: () => this.#catalog.entries,
    });
    this.#offered = new OfferedBundles({
      revisions: (source) => neighbouringRevisions(journal(), sourceKey(source)),
      named: (source, { spec, current }) => readNamed(journal(), sourceKey(source), spec, current.digest),
      leftOut: (entry) => this.#tellSources.leftOut(entry),
      render: (services) => this.#render(services),
      actions: (source) => this.#machine.actionsOf(source),
    });
    this.#catalog = new OfferedCatalog(options.services ?? [], this.#offered);
    this.#operations = sourceOperations({
      ...{ journal, options, configured: this.#configured, copies: this.#copies, readings: this.#readings },
      ...{ tell, tellSources: this.#tellSources },
      unstored: (key) => {
        const ofSource = [...this.#offered.leftOut].filter(({ source }) => sourceKey(source) === key);
        return new Set(ofSource.map(({ spec }) => spec));
      },
    });
    this.kinds = this.#operations.kinds;
    this.admin = bundleAdmin(
      bundleAdminPorts({
        ...{ journal, options, services: this, copies: this.#copies, configured: this.#configured },
        find: (serviceId, revision) => this.#find(serviceId, revision),
        ...{ readings: this.#readings, catalog: this.#catalog, runner: () => this.#machine.runner },
        decide: (key, decision, by) => this.#decide(key, decision, by),
      }),
    );
    this.judge = judgeRequests({
      isInCode: (serviceId) => this.#catalog.isInCode(serviceId),
      entry: (serviceId) => this.#catalog.entry(serviceId),
      copies: () => this.#copies.all(),
      unread: () => this.#configured.unread(),
      followOthers: () => this.#followOthers(),
      source: (identityName) => this.#configured.sourceOf(identityName),
      retiredMs: this.#operations.collectRules.retiredMs,
    });
  }

  get services(): readonly Service[] | undefined {
    return this.#catalog.services;
  }

  /** F5-79: of the newest snapshot. One that is older than is looked for makes it unknown only if no other is known. */
  get changedAt(): number | null {
    const known = this.#copies.all().flatMap(({ snapshotAt }) => snapshotAt ?? []);
    return known.length === 0 ? null : Math.max(...known);
  }

  /**
   * The order: the runner first, so that what was started before can be found again; then the configuration, so that sources which left it
   * are known; then the copies, so that the first request is answered from what is stored, whatever becomes of the registries (F5-3).
   */
  async open(ports: ServiceSourcePorts): Promise<void> {
    this.#ports = ports;
    this.#options.pushed?.open(ports.journal);
    await this.#machine.open();
    // Those of its turn: others may have been configured since it was started.
    await this.#inTurn(() => this.#use(this.#wanted));
    await askForCollection(this.#journal(), "when due");
    await this.#building.run();
    this.#isOpen = true;
    this.#machine.startWork();
    this.#hurryUnread.start();
  }

  configure(sources: readonly BundleSource[]): Promise<void> {
    return this.#inTurn(async () => {
      checkNames(sources);
      if (this.#ports !== undefined) {
        await this.#use(sources);
        await this.#building.run();
      }
      this.#wanted = sources;
    });
  }

  /** One configuration after the other, in the order in which they were asked for. */
  #inTurn(change: () => Promise<void>): Promise<void> {
    const configuring = this.#configuring.then(change);
    this.#configuring = configuring.catch(() => undefined);
    return configuring;
  }

  async #use(sources: readonly BundleSource[]): Promise<void> {
    for (const key of await this.#configured.configure(sources)) {
      if (this.#copies.isFollowed(key)) continue;
      await askForReading(this.#journal(), key, byItself);
      await this.#copies.follow(key);
      // Who lacks it may have drained it before this process heard of anything.
      await this.#configured.claim(key);
    }
  }

  /**
   * Never answers that what is offered now may stand for the revision: of two sources with one id (F5-58) it may be the other's. What is not found in
   * any source is for another process, or for an operator to bring back.
   */
  async resolve(serviceId: string, revision: string): Promise<Service | undefined> {
    if (this.#catalog.isInCode(serviceId)) return undefined;
    const find = () => this.#find(serviceId, revision);
    const found = (await find()) ?? ((await this.#followOthers()) ? await find() : undefined);
    if (found === undefined && this.#isKnown(serviceId))
      throw new Error(`no source has revision ${revision} of service ${serviceId}`);
    return found;
  }

  /**
   * Sources that others have added since this process was configured, as it would follow them after a restart. Nothing is decided about them:
   * who has them sees to that. Answers whether there were any.
   */
  async #followOthers(): Promise<boolean> {
    let isAny = false;
    await this.#inTurn(async () => {
      for (const { identityName } of await keptSources(this.#journal())) {
        const key = sourceKey(identityName);
        if (this.#copies.isFollowed(key)) continue;
        await this.#copies.follow(key);
        isAny = true;
      }
      if (isAny) await this.#building.run();
    });
    return isAny;
  }

  #isKnown(serviceId: string): boolean {
    return [...this.#copies.allStored().values()].some(({ specs }) =>
      [...specs.values()].some((record) => record.kind !== "candidate" && record.serviceId === serviceId),
    );
  }

  async #find(serviceId: string, revision: string): Promise<Service | undefined> {
    for (const [key, { data, specs }] of this.#copies.allStored()) {
      for (const [spec, record] of specs) {
        if (record.kind === "candidate" || record.serviceId !== serviceId) continue;
        const part = revisionPart(spec, revision as Digest);
        const found = (await readRevisions(this.#journal(), key, [part])).get(part);
        if (found !== undefined) return this.#offered.service(data.identityName, found, found.spec.name);
      }
    }
    return undefined;
  }

  /** F5-51: what has retired may be due now. */
  instanceGone(serviceId: string): void {
    const isRetired = [...this.#copies.allStored().values()].some(({ specs }) =>
      [...specs.values()].some(
        (record) => record.kind === "service" && record.serviceId === serviceId && record.state.kind === "retired",
      ),
    );
    // A hint: the next pass comes anyway.
    if (isRetired) void askForCollection(this.#journal(), "now").catch(() => undefined);
  }

  close(): void {
    this.#isOpen = false;
    this.#hurryUnread.stop();
    this.#machine.close();
    this.#copies.close();
    this.#configured.close();
    this.#ports = undefined;
  }

  sources(): ReadonlyMap<string, StoredSource> {
    return new Map([...this.#copies.allStored().values()].map((stored) => [stored.data.name, stored]));
  }

  async refresh(source: string, by: Attribution): Promise<string | undefined> {
    const key = this.#copies.keyOf(source);
    return key === undefined ? undefined : askForReading(this.#journal(), key, by);
  }

  async decide(
    source: string,
    decision: (stored: StoredSource, decider: Decider) => AdminDecision,
    by: Attribution & { readonly why: string },
  ): Promise<AdminDecision | undefined> {
    const key = this.#copies.keyOf(source);
    if (key === undefined) return undefined;
    const decider = { by: by.actor.subject, why: by.why, now: this.#journal().now() };
    return this.#decide(key, (stored) => decision(stored, decider), by);
  }

  async exchangeSecrets(secrets: readonly OperatorSecret[]): Promise<void> {
    this.#machine.secrets.exchange(secrets);
    this.#offered.forget();
    if (this.#ports !== undefined) await this.#building.run();
  }

  async preview(sources: readonly BundleSource[]): Promise<readonly PreviewView[]> {
    checkNames(sources);
    return previewSources(this.#journal(), this.#copies.allStored(), sources);
  }

  collectable(): Promise<ReadonlyMap<string, Collection>> {
    return this.#operations.collectable();
  }

  #decide(key: string, decision: (stored: StoredSource) => AdminDecision, by: Attribution) {
    const changed = (change: SourceChange) => this.#tellSources.changed(key, change, by.actor.subject);
    return decideSource({ journal: this.#journal(), copy: this.#copies.get(key), changed }, decision, by);
  }

  async #build(): Promise<void> {
    this.#tellSources.known(this.#copies.all());
    // By what is stored, and not by what this process is configured with: all make the same catalog of it.
    const ranked = [...this.#copies.allStored()].map(([key, stored]) => {
      const { priority, failover } = stored.data.rank ?? rankOf(this.#configured.get(key));
      return { stored, priority, failover };
    });
    if (!(await this.#catalog.rebuild(ranked, this.#configured.size > 0))) return;
    // Whoever opens this takes what is offered then.
    if (this.#isOpen) this.#ports?.changed();
    this.#machine.files.mirrorOffered();
  }

  #render(services: readonly Service[]): void {
    try {
      this.#ports?.prepare(services);
    } catch {
      // The broker meets it again when it takes what is offered, and tells it.
    }
  }

  #journal(): Journal {
    if (this.#ports === undefined) throw new Error("sources of bundles are read when their broker has started");
    return this.#ports.journal;
  }
}

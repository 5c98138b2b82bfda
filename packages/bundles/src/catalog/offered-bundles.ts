import { setImmediate } from "node:timers/promises";
import { BrokerError, type Service } from "@osbert/broker";
import type { JsonObject } from "@osbert/protocol";
import type { BundleSpec } from "../formats/bundle-spec.js";
import { hideParameters } from "../formats/hide-parameters.js";
import { type ServiceNaming, toService } from "../formats/to-service.js";
import type { CatalogEntry } from "../reconcile/merge-sources.js";
import { type RevisionPart, type RevisionRecord, revisionPart } from "../reconcile/records.js";
import { bundleStateSchema } from "./action-input.js";
import { bundleFunctions } from "./bundle-functions.js";
import { KeptAsText } from "./kept-as-text.js";
import { secretValues } from "./operator-secrets.js";
import type { ActionPorts } from "./run-action.js";
import { changesParameters, planFrom } from "./update-change.js";

export interface OfferedBundlesPorts {
  /** Reads revisions of a source as they are stored, by their parts, in the order of those. They never change. */
  readonly revisions: (
    source: string,
  ) => (parts: readonly RevisionPart[]) => Promise<ReadonlyMap<RevisionPart, RevisionRecord>>;
  /** One of them, and whether its spec still names it: of one that was not found. */
  readonly named: (
    source: string,
    entry: CatalogEntry,
  ) => Promise<{ readonly isNamed: boolean; readonly revision: RevisionRecord | undefined }>;
  /** Told of an entry that cannot be offered, because its revision is not stored: once, until it is. */
  readonly leftOut: (entry: CatalogEntry) => void;
  /**
   * Has services rendered as the catalog shows them, some at a time. It is only that they need not be made once more when all are
   * offered: what cannot be offered is told then.
   */
  readonly render: (services: readonly Service[]) => void;
  /** What runs the actions of a source's bundles. */
  readonly actions: (source: string) => ActionPorts;
}

/** Services of bundles. One that has not changed is the same object as before, so that nobody compiles it again. */
export class OfferedBundles {
  readonly #ports: OfferedBundlesPorts;
  readonly #texts = new KeptAsText();
  /** What makes a service of facts, for all bundles of a source. */
  readonly #makers = new WeakMap<ActionPorts, (facts: BundleFacts) => Service>();
  /** What was made last, in the order of the catalog, and the services that were made of it. */
  #entries: readonly CatalogEntry[] = [];
  #services: readonly Service[] = [];
  #leftOut: ReadonlyMap<RevisionPart, CatalogEntry> = new Map();
  #forgotten = 0;

  constructor(ports: OfferedBundlesPorts) {
    this.#ports = ports;
  }

  /**
   * The services of a merged catalog, in its order. One whose revision is not stored, which only damage can bring about, is left out: it
   * would keep all others, of every source, from being offered.
   */
  async services(entries: readonly CatalogEntry[]): Promise<readonly Service[]> {
    const forgotten = this.#forgotten;
    const before = this.#madeBefore(entries);
    const fresh = await this.#make(entries.filter((_, index) => before[index] === undefined));
    const made: CatalogEntry[] = [];
    const services: Service[] = [];
    const leftOut = new Map<RevisionPart, CatalogEntry>();
    for (const [index, entry] of entries.entries()) {
      const service = before[index] ?? fresh.get(entry.serviceId);
      if (service === undefined) leftOut.set(partOf(entry), entry);
      else {
        made.push(entry);
        services.push(service);
      }
    }
    for (const [part, entry] of leftOut) if (!this.#leftOut.has(part)) this.#ports.leftOut(entry);
    this.#leftOut = leftOut;
    // What was to be forgotten meanwhile is offered once more, and made anew the next time.
    if (forgotten === this.#forgotten) {
      this.#entries = made;
      this.#services = services;
    }
    return services;
  }

  /** What the last catalog lacks, because its revisions are not stored. */
  get leftOut(): Iterable<CatalogEntry> {
    return this.#leftOut.values();
  }

  /** All are made anew the next time: what the operator gives to bundles has changed. */
  forget(): void {
    this.#forgotten += 1;
    this.#entries = [];
    this.#services = [];
  }

  /** For each entry the service that was made of it, if it was. Both lists are in one order: they are walked side by side. */
  #madeBefore(entries: readonly CatalogEntry[]): readonly (Service | undefined)[] {
    let at = 0;
    return entries.map((entry) => {
      for (let known = this.#entries[at]; known !== undefined && known !== entry; known = this.#entries[at]) {
        if (known.serviceId >= entry.serviceId) break;
        at += 1;
      }
      const known = this.#entries[at];
      return known !== undefined && isAlike(known, entry) ? this.#services[at] : undefined;
    });
  }

  /** Some at a time: after a start, that is all of them. In the order of their parts, which is that of the store: neighbours are read together. */
  async #make(entries: readonly CatalogEntry[]): Promise<ReadonlyMap<string, Service>> {
    const bySource = new Map<string, CatalogEntry[]>();
    for (const entry of entries) {
      const others = bySource.get(entry.source);
      if (others === undefined) bySource.set(entry.source, [entry]);
      else others.push(entry);
    }
    const made = new Map<string, Service>();
    for (const [source, unordered] of bySource) {
      const read = this.#ports.revisions(source);
      const wanted = unordered.map((entry) => ({ entry, part: partOf(entry) }));
      wanted.sort((one, other) => (one.part < other.part ? -1 : 1));
      for (let from = 0; from < wanted.length; from += revisionsAtOnce) {
        const some = wanted.slice(from, from + revisionsAtOnce);
        const revisions = await read(some.map(({ part }) => part));
        const services: Service[] = [];
        for (const { entry, part } of some) {
          const revision = revisions.get(part) ?? (await this.#lookAgain(source, entry));
          if (revision === undefined) continue;
          const service = this.service(source, withTextsOf(entry, revision), entry.name);
          services.push(service);
          made.set(entry.serviceId, service);
        }
        this.#ports.render(services);
        // Others have their turn, too: what is made of thousands of bundles takes a second.
        await setImmediate();
      }
    }
    return made;
  }

  /** Throws if the entry is of an earlier time, as in a process that stood still: what has changed since is about to be taken in. */
  async #lookAgain(source: string, entry: CatalogEntry): Promise<RevisionRecord | undefined> {
    const { isNamed, revision } = await this.#ports.named(source, entry);
    if (revision === undefined && !isNamed)
      throw new Error(`revision ${entry.current.digest} of ${entry.spec} is not the current one any more`);
    return revision;
  }

  /** A bundle at a revision, as a service under a name. */
  service(
    source: string,
    { spec, serviceId, artifact, plans, version, digest }: RevisionRecord,
    name: string,
  ): Service {
    const actions = this.#ports.actions(source);
    // F5-83: by what the settings name, whatever has become of its value.
    const hidden = Object.keys(secretValues(actions.secrets(spec)));
    const facts = { spec, artifact, plans, hidden, naming: { id: serviceId, name, revision: digest, version } };
    return this.#texts.keep<BundleFacts>(facts, this.#makerOf(actions));
  }

  #makerOf(actions: ActionPorts): (facts: BundleFacts) => Service {
    const make = this.#makers.get(actions) ?? toBundleService(actions);
    this.#makers.set(actions, make);
    return make;
  }
}

interface BundleFacts extends Pick<RevisionRecord, "spec" | "artifact" | "plans"> {
  /** Parameters that users neither see nor give. */
  readonly hidden: readonly string[];
  readonly naming: Omit<ServiceNaming, "plans">;
}

const toBundleService =
  (actions: ActionPorts) =>
  ({ spec, artifact, plans, hidden, naming }: BundleFacts): Service => {
    const functions = bundleFunctions(actions, { serviceId: naming.id, spec, artifact, plans });
    const { provision, update, deprovision, bind, unbind } = functions;
    const checks: Pick<Service, "prepareUpdate"> = {
      prepareUpdate: ({ plan, previous, parameters }) => {
        checkPlanChange(spec, previous.plan, plan);
        return checkParameterChange(spec, previous.parameters, parameters);
      },
    };
    // Assigned, and not spread: V8 has a shape for each object that others were spread into, and shapes take more than a kilobyte.
    return Object.assign(
      toService(hideParameters(spec, new Set(hidden)), { ...naming, plans }),
      { state: bundleStateSchema, bindingState: bundleStateSchema, provision, update, deprovision },
      checks,
      spec.plans.some(({ bindable }) => bindable) ? { bind, unbind } : {},
    );
  };

/** Few enough that what is made of them on the way is gone before V8 takes it for something that stays. */
const revisionsAtOnce = 50;

/** The same revision; ids that the entry has, too, are in memory once. */
function withTextsOf(
  { serviceId, current: { digest, plans } }: CatalogEntry,
  revision: RevisionRecord,
): RevisionRecord {
  const known = new Map(plans.map((plan) => [plan.id, plan]));
  const shared = revision.plans.map((plan) => {
    const same = known.get(plan.id);
    return same?.name === plan.name ? same : plan;
  });
  const ids = revision.serviceId === serviceId && revision.digest === digest ? { serviceId, digest } : {};
  return { ...revision, ...ids, plans: shared };
}

function partOf({ spec, current }: CatalogEntry): RevisionPart {
  return revisionPart(spec, current.digest);
}

/** Whether one service is made of both. */
function isAlike(one: CatalogEntry, other: CatalogEntry): boolean {
  return (
    one === other ||
    (one.serviceId === other.serviceId &&
      one.source === other.source &&
      one.spec === other.spec &&
      one.name === other.name &&
      one.current.digest === other.current.digest &&
      one.current.version === other.current.version)
  );
}

/**
 * F5-40, 50: the revision that an instance is of says which plans it may change to; with an upgrade, the one that it comes to. There its
 * plan may have another name by now, and that is no change.
 */
function checkPlanChange(spec: BundleSpec, from: string, to: string): void {
  const own = planFrom(spec, from);
  if (to !== (own?.name ?? from) && own?.updatesTo.includes(to) !== true)
    throw new BrokerError("bad-request", `instances of plan ${from} do not change to plan ${to}`);
}

/** An instance of a bundle without the action `update` comes to another revision, and stays what it is otherwise. */
function checkParameterChange({ actions }: BundleSpec, from: JsonObject, to: unknown): Record<string, never> {
  if (!actions.includes("update") && changesParameters(from, (to ?? {}) as JsonObject))
    throw new BrokerError("unprocessable", "parameters cannot be changed: the bundle has no action update");
  return {};
}

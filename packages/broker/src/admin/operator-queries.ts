import type { Journal, OperationState, Page, Resource } from "@osbert/journal";
import { BrokerError } from "@osbert/protocol";
import type { BrokerCatalog } from "../catalog/catalog.js";
import { bindingId, bindingPart, bindingPrefix, bindingRecord } from "../records/binding-record.js";
import { type InstanceAddress, instanceAddress, instanceKey } from "../records/instance-key.js";
import { type InstancePhase, instanceData, instancePart, instanceRecord } from "../records/instance-record.js";
import { type InstanceResource, instanceResource } from "../records/instance-resource.js";
import { laneOf } from "../records/lane.js";
import { bindingOperation } from "../records/open-operations.js";
import type { BulkTarget } from "./bulk-action.js";
import {
  type EntryView,
  entryView,
  type OperationDetails,
  operationDetails,
  type StepView,
  stepViews,
} from "./entry-view.js";
import type { Pauses } from "./pauses.js";
import {
  type BindingDetails,
  type BindingView,
  bindingView,
  type InstanceSummary,
  type InstanceView,
  instanceSummary,
  instanceView,
  type OperationView,
  operationView,
  operationViews,
  type ServiceView,
  serviceView,
} from "./views.js";

export interface OperatorQueryPorts {
  readonly journal: Journal;
  readonly catalog: () => BrokerCatalog;
  readonly pauses: Pauses;
}

export interface PageRequest {
  readonly after?: string;
  readonly limit?: number;
}

export interface InstanceFilter extends PageRequest {
  readonly platform?: string;
  /** By id or name. */
  readonly service?: string;
  /** By id. */
  readonly plan?: string;
  /** Without it, all but those that are gone. */
  readonly phase?: InstancePhase;
}

export interface OperationFilter extends PageRequest {
  readonly platform?: string;
  /** By id or name. */
  readonly service?: string;
  /** By id or name. */
  readonly plan?: string;
  readonly state?: OperationState;
  /** Accepted at least so long ago. */
  readonly olderThanMs?: number;
  /** Only those whose attempts failed in a row. */
  readonly failing?: boolean;
}

/** Resources that one request looks at, whatever it finds among them. The page then says where to go on. */
const mostLookedAt = 1_000;
const defaultLimit = 100;
/** Entries and bindings are read whole, with results and credentials that are not shown: no page has more, whatever is asked for. */
const mostWhole = 100;
/** Pages of entries that are looked through for the story of one operation. */
const storyPages = 10;

/** The reading half of an operator's view: pages of bounded cost, from indices, with every secret masked. */
export class OperatorQueries {
  readonly #ports: OperatorQueryPorts;

  constructor(ports: OperatorQueryPorts) {
    this.#ports = ports;
  }

  /**
   * Instances by key. Those of a service or plan and those that failed are found by their labels, those that are being created or
   * deleted by their work; for other phases, instances are looked through some at a time.
   */
  async instances(filter: InstanceFilter): Promise<Page<InstanceSummary>> {
    const catalog = this.#ports.catalog();
    const service = filter.service === undefined ? undefined : this.serviceId(filter.service);
    const isWanted = (item: InstanceSummary) =>
      (service === undefined || item.service.id === service) &&
      (filter.plan === undefined || item.plan.id === filter.plan) &&
      (filter.platform === undefined || item.platform === filter.platform) &&
      (filter.phase === undefined ? item.phase !== "gone" : item.phase === filter.phase);
    return collect(filter, this.#candidates(filter, service), (resource) => {
      const item = instanceSummary(resource, catalog);
      return item !== undefined && isWanted(item) ? [item] : [];
    });
  }

  async instance(address: InstanceAddress): Promise<InstanceView> {
    const { journal, catalog } = this.#ports;
    const key = instanceKey(address.platform, address.instance);
    const resource = instanceResource.resource(await journal.read(key, [instancePart]));
    const summary = resource === undefined ? undefined : instanceSummary(resource, catalog());
    if (resource === undefined || summary === undefined) throw noInstance();
    return instanceView(summary, instanceRecord(resource), operationViews(resource), resource.queued);
  }

  async bindings(address: InstanceAddress, page: PageRequest): Promise<Page<BindingView>> {
    const { journal } = this.#ports;
    const limit = Math.min(page.limit ?? defaultLimit, mostWhole);
    const { after } = page;
    const key = instanceKey(address.platform, address.instance);
    if (instanceData(instanceResource.resource(await journal.read(key))) === undefined) throw noInstance();
    const from = after === undefined ? {} : { after: bindingPart(after) };
    const read = await journal.parts(key, bindingPrefix, { limit, ...from });
    const { items, next } = instanceResource.partsUnder(bindingPrefix, read);
    return {
      items: items.map(({ id, value }) => bindingView(bindingId(id) ?? "", value)),
      next: bindingId(next),
    };
  }

  /** A binding with its open operation, by one read of its instance. */
  async binding({ platform, instance }: InstanceAddress, id: string): Promise<BindingDetails> {
    const key = instanceKey(platform, instance);
    const part = bindingPart(id);
    const resource = instanceResource.resource(await this.#ports.journal.read(key, [part]));
    const record = bindingRecord(resource, id);
    if (resource === undefined || record === undefined)
      throw new BrokerError("not-found", "there is no such binding of this instance");
    const open = bindingOperation(resource, part);
    return { ...bindingView(id, record), operation: open === undefined ? null : (operationView(key, open) ?? null) };
  }

  /** Newest first; `after` is the number of the last entry that was seen. */
  async entries(address: InstanceAddress, page: PageRequest): Promise<Page<EntryView>> {
    const limit = Math.min(page.limit ?? defaultLimit, mostWhole);
    const { after } = page;
    const before = after === undefined ? Number.MAX_SAFE_INTEGER : Number(after);
    if (!Number.isSafeInteger(before)) throw new BrokerError("bad-request", "after must be the number of an entry");
    const key = instanceKey(address.platform, address.instance);
    const found = await this.#ports.journal.entries(key, { before, limit });
    if (found.length === 0 && after === undefined && (await this.#ports.journal.read(key)) === undefined)
      throw noInstance();
    return { items: found.map(entryView), next: found.length < limit ? null : String(found.at(-1)?.seq) };
  }

  /** Open operations over all instances, from the index of what has work: what is idle is not looked at. */
  async operations(filter: OperationFilter): Promise<Page<OperationView>> {
    const { journal } = this.#ports;
    const service = filter.service === undefined ? undefined : this.serviceId(filter.service);
    const now = journal.now();
    const isWanted = (operation: OperationView) =>
      (filter.state === undefined || operation.state === filter.state) &&
      (filter.olderThanMs === undefined || Date.parse(operation.accepted_at) <= now - filter.olderThanMs) &&
      (filter.failing !== true || operation.failures > 0);
    const candidates = (page: PageRequest) =>
      journal.withWork({ ...(service !== undefined && { lane: laneOf(service) }), ...page });
    return collect(filter, candidates, (resource) =>
      this.#isOf(resource, filter) ? operationViews(resource).filter(isWanted) : [],
    );
  }

  /**
   * Instances whose last operation did not succeed, with that operation: those that `retry` may begin anew. Instances are looked through
   * some at a time. `olderThanMs`: nothing of the instance has ended since.
   */
  async failedOperations(filter: Omit<OperationFilter, "state" | "failing">): Promise<Page<BulkTarget>> {
    const service = filter.service === undefined ? undefined : this.serviceId(filter.service);
    const { platform, olderThanMs = 0, after, limit } = filter;
    const page = { ...(after !== undefined && { after }), ...(limit !== undefined && { limit }) };
    const latest = this.#ports.journal.now() - olderThanMs;
    return collect(page, this.#candidates({ ...(platform !== undefined && { platform }) }, service), (resource) => {
      const address = instanceAddress(resource.key);
      const last = instanceData(resource)?.last ?? null;
      const isOld = (resource.last?.endedAt ?? 0) <= latest;
      const isIdle = resource.open.length === 0;
      if (address === undefined || last?.state !== "failed" || !isOld || !isIdle || !this.#isOf(resource, filter))
        return [];
      return [{ ...address, operation: last.id, verb: last.verb, binding: null, state: last.state }];
    });
  }

  /** By service, plan and platform. */
  #isOf(resource: InstanceResource, { platform, service, plan }: Omit<OperationFilter, "state">): boolean {
    const item = instanceSummary(resource, this.#ports.catalog());
    if (item === undefined) return false;
    return (
      (platform === undefined || item.platform === platform) &&
      (service === undefined || item.service.id === this.serviceId(service)) &&
      (plan === undefined || item.plan.id === plan || item.plan.name === plan)
    );
  }

  async operation(address: InstanceAddress, id: string): Promise<OperationDetails> {
    const { journal } = this.#ports;
    const key = instanceKey(address.platform, address.instance);
    const status = await journal.operation(key, id);
    if (status === undefined)
      throw new BrokerError("not-found", "there is no such operation of this instance, or it is not kept any more");
    const open = status.open === null ? undefined : operationView(key, status.open);
    const { steps, entries, isComplete } = await this.#story(key, id);
    return { ...operationDetails(status, open ?? null), steps, entries, more_entries: !isComplete };
  }

  /** From the entry that accepted it on; others of the instance may lie between its own. */
  async #story(key: string, id: string) {
    const steps: StepView[] = [];
    const entries: EntryView[] = [];
    let after = Number(/^[0-9]+/.exec(id)?.[0] ?? 0) - 1;
    for (let pages = 0; pages < storyPages; pages++) {
      const page = await this.#ports.journal.entries(key, { after, limit: mostWhole });
      const own = page.filter(({ operation }) => operation === id);
      steps.push(...stepViews(own));
      entries.push(...own.map(entryView));
      if (page.length < mostWhole || own.some(({ kind }) => kind === "settled"))
        return { steps, entries, isComplete: true };
      after = page.at(-1)?.seq ?? after;
    }
    return { steps, entries, isComplete: false };
  }

  services(): readonly ServiceView[] {
    const { catalog, pauses } = this.#ports;
    const { services } = catalog();
    const offered = [...services.values()].map(({ service: { id, name } }) => serviceView({ id, name }, pauses.of(id)));
    const retired = pauses.all.filter(({ service }) => !services.has(service));
    return [...offered, ...retired.map((pause) => serviceView({ id: pause.service, name: null }, pause))];
  }

  /** Refuses the name of a service or plan that the catalog does not have, nor any instance: what is misspelled must not read as "none". */
  async checkNamed({ service, plan }: Pick<OperationFilter, "service" | "plan">): Promise<void> {
    const { journal, catalog } = this.#ports;
    const hasInstances = async (name: string, value: string) =>
      (await journal.find({ label: { name, value }, limit: 1 })).items.length > 0;
    const all = [...catalog().services.values()];
    const meant = service === undefined ? all : all.filter(({ service: { id } }) => id === this.serviceId(service));
    if (service !== undefined && meant.length === 0 && !(await hasInstances("service", service)))
      throw noneOf(
        "service",
        service,
        all.map((each) => each.service.name),
      );
    const plans = meant.flatMap((each) => [...each.plans.values()]);
    const isPlan = plans.some((each) => each.plan.id === plan || each.name === plan);
    if (plan !== undefined && !isPlan && !(await hasInstances("plan", plan)))
      throw noneOf(
        "plan",
        plan,
        plans.map(({ name }) => name),
      );
  }

  /** The id of a service from its id or its name. What is in no catalog is taken for an id. */
  serviceId(text: string): string {
    const { services } = this.#ports.catalog();
    if (services.has(text)) return text;
    return [...services.values()].find(({ service }) => service.name === text)?.service.id ?? text;
  }

  #candidates(filter: InstanceFilter, service: string | undefined): Candidates {
    const { journal } = this.#ports;
    const { phase, plan, platform } = filter;
    if (phase === "creating" || phase === "deleting")
      return (page) => journal.withWork({ ...(service !== undefined && { lane: laneOf(service) }), ...page });
    const prefix = platform === undefined ? {} : { prefix: instanceKey(platform, "") };
    const label =
      phase === "failed"
        ? { name: "phase", value: "failed" }
        : plan !== undefined
          ? { name: "plan", value: plan }
          : service !== undefined
            ? { name: "service", value: service }
            : undefined;
    // What is gone has no labels any more.
    const labelled = label === undefined || phase === "gone" ? {} : { label };
    return (page) => journal.find({ ...labelled, ...prefix, ...page });
  }
}

const mostNamed = 20;

function noneOf(what: string, name: string, names: readonly string[]): BrokerError {
  const known = [...new Set(names)];
  const more = known.length > mostNamed ? ` and ${known.length - mostNamed} more` : "";
  return new BrokerError(
    "not-found",
    `there is no ${what} ${JSON.stringify(name.slice(0, 100))}; there are ${known.slice(0, mostNamed).join(", ") || "none"}${more}`,
  );
}

type Candidates = (page: { readonly after?: string; readonly limit: number }) => Promise<Page<Resource>>;

/** Looks on until a page is full, or until it has looked at enough for one request. */
async function collect<Item>(
  { after, limit = defaultLimit }: PageRequest,
  candidates: Candidates,
  wanted: (resource: InstanceResource) => readonly Item[],
): Promise<Page<Item>> {
  const items: Item[] = [];
  let next: string | null = after ?? null;
  let lookedAt = 0;
  do {
    const size = Math.max(1, limit - items.length);
    const page: Page<Resource> = await candidates({ ...(next !== null && { after: next }), limit: size });
    for (const resource of page.items)
      if (instanceAddress(resource.key) !== undefined) items.push(...wanted(instanceResource.resource(resource)));
    lookedAt += size;
    next = page.next;
  } while (next !== null && items.length < limit && lookedAt < mostLookedAt);
  return { items, next };
}

function noInstance(): BrokerError {
  return new BrokerError("not-found", "there is no such instance");
}

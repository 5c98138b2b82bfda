import { setTimeout as sleep } from "node:timers/promises";
import type { Followed, Journal, Json } from "@osbert/journal";
import type { ServicePlan } from "@osbert/protocol";
import type { Client } from "@osbert/protocol/client";
import { offeringsIn } from "../decisions/next-catalog.js";
import { firstBehind, inOrder, type OfferingPlace } from "../decisions/offering-order.js";
import { type BrokerData, brokerRecords, type CatalogPage, type OfferingRecord } from "../records/broker-record.js";
import { keys } from "../records/keys.js";
import { brokerClient, isSameAddress } from "./broker-client.js";

/** The names of all brokers, as they are kept under `keys.brokerIndex`. */
export interface BrokerIndex {
  readonly names: readonly string[];
}

/** Every process follows each of them. */
export const mostBrokers = 500;

export function readBrokerIndex(data: unknown): BrokerIndex {
  const names = (data as BrokerIndex | null)?.names;
  return { names: Array.isArray(names) ? names : [] };
}

/** What this process has of one broker. */
interface BrokerCopy {
  readonly followed: Followed<Json>;
  data: BrokerData;
  client: Client;
  revision: number;
  offerings: ReadonlyMap<string, KnownOffering>;
  /** The same in their order. */
  sorted: readonly OfferingRecord[];
  /** What left the catalog may have had the name of what is there now. Each in their order. */
  byName: ReadonlyMap<string, readonly OfferingRecord[]>;
}

interface KnownOffering {
  readonly record: OfferingRecord;
  readonly plans: ReadonlyMap<string, ServicePlan>;
}

/** After something that the store did not answer. */
const againMs = 1_000;
const pagesAtOnce = 8;

/**
 * What this process knows of all brokers, as new as the last change that anybody has committed: the index says which there are, and each of them is
 * followed. A catalog is read when its revision changes.
 */
export class BrokerCopies {
  readonly #journal: () => Journal;
  readonly #copies = new Map<string, BrokerCopy>();
  readonly #beginning = new Map<string, Promise<void>>();
  readonly #listeners = new Set<() => void>();
  #index: Followed<BrokerIndex> | undefined;
  #closing = new AbortController();

  constructor(journal: () => Journal) {
    this.#journal = journal;
  }

  async open(): Promise<void> {
    this.#index = await this.#journal().followed(keys.brokerIndex, readBrokerIndex);
    this.#index.onChange(() => void this.#takeInIndex());
    await Promise.all(this.#index.value.names.map((name) => this.follow(name)));
  }

  close(): void {
    this.#closing.abort();
    this.#index?.close();
    for (const { followed } of this.#copies.values()) followed.close();
    this.#copies.clear();
    this.#tell();
  }

  /** Told after every change of what is known. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  names(): readonly string[] {
    return [...this.#copies.keys()].sort();
  }

  /** `undefined`: it is not registered, or about to be removed. */
  data(name: string): BrokerData | undefined {
    const data = this.#copies.get(name)?.data;
    return data?.removed === false ? data : undefined;
  }

  /** This name, and those that have the same URL: registered ones are written alike. */
  namesOf(name: string): readonly string[] {
    const url = this.#copies.get(name)?.data.url;
    const others = [...this.#copies].filter(([other, { data }]) => other !== name && data.url === url);
    return [name, ...others.map(([other]) => other)];
  }

  offering(name: string, id: string): OfferingRecord | undefined {
    return this.#copies.get(name)?.offerings.get(id)?.record;
  }

  offerings(name: string): readonly OfferingRecord[] {
    return [...(this.#copies.get(name)?.offerings.values() ?? [])].map(({ record }) => record);
  }

  /** In their order, those behind a place, all or of one name. Whoever asks for some of them looks at no others. */
  *offeringsBehind(
    broker: string,
    place: OfferingPlace | undefined,
    name: string | undefined,
  ): Generator<OfferingRecord> {
    const copy = this.#copies.get(broker);
    const records = (name === undefined ? copy?.sorted : copy?.byName.get(name)) ?? [];
    const from = place === undefined ? 0 : firstBehind(records, place);
    for (let at = from; at < records.length; at++) yield records[at] as OfferingRecord;
  }

  /** Those with this id or name: few, however many there are. */
  offeringsCalled(name: string, idOrName: string): readonly OfferingRecord[] {
    const copy = this.#copies.get(name);
    const byId = copy?.offerings.get(idOrName)?.record;
    const named = copy?.byName.get(idOrName) ?? [];
    return byId === undefined || named.includes(byId) ? named : [byId, ...named];
  }

  plan(name: string, offering: string, plan: string): ServicePlan | undefined {
    return this.#copies.get(name)?.offerings.get(offering)?.plans.get(plan);
  }

  /** Also of one that is about to be removed: what is under way goes on. */
  client(name: string): Client | undefined {
    return this.#copies.get(name)?.client;
  }

  /** One with the address that was just read, which the copy may not have yet. */
  clientFor(data: BrokerData): Client {
    const copy = this.#copies.get(data.name);
    return copy !== undefined && isSameAddress(copy.data, data) ? copy.client : brokerClient(data);
  }

  /** Waits until a broker's copy is so, with its catalog, for so long. */
  async until(name: string, wanted: (data: BrokerData) => boolean, withinMs: number): Promise<boolean> {
    const is = () => {
      const copy = this.#copies.get(name);
      return copy !== undefined && copy.revision === copy.data.catalog.revision && wanted(copy.data);
    };
    if (is()) return true;
    const waiting = new AbortController();
    const holds = new Promise<boolean>((resolve) => {
      const look = () => {
        if (is()) resolve(true);
        else if (this.#closing.signal.aborted) resolve(false);
      };
      this.#listeners.add(look);
      waiting.signal.addEventListener("abort", () => this.#listeners.delete(look));
    });
    const late = sleep(withinMs, false, { signal: waiting.signal }).catch(() => false);
    const held = await Promise.race([holds, late]);
    waiting.abort();
    return held;
  }

  /** From now on there is a copy of it. Asked for twice, it is followed once. */
  follow(name: string): Promise<void> {
    if (this.#copies.has(name)) return Promise.resolve();
    const beginning = this.#beginning.get(name);
    if (beginning !== undefined) return beginning;
    const begun = this.#begin(name).finally(() => {
      if (this.#beginning.get(name) === begun) this.#beginning.delete(name);
    });
    this.#beginning.set(name, begun);
    return begun;
  }

  async #begin(name: string): Promise<void> {
    const followed = await this.#journal().followed(keys.broker(name), (data: Json): Json => data);
    const data = brokerData(followed.value);
    if (data === undefined || this.#closing.signal.aborted) return followed.close();
    const client = brokerClient(data);
    const copy: BrokerCopy = {
      followed,
      data,
      client,
      revision: 0,
      offerings: new Map(),
      sorted: [],
      byName: new Map(),
    };
    this.#copies.set(name, copy);
    followed.onChange((value) => this.#learn(copy, brokerData(value)));
    await this.#readCatalog(copy);
    this.#tell();
  }

  #learn(copy: BrokerCopy, data: BrokerData | undefined): void {
    if (data === undefined) return;
    if (!isSameAddress(copy.data, data)) copy.client = brokerClient(data);
    copy.data = data;
    if (data.catalog.revision === copy.revision) this.#tell();
    else void this.#readCatalog(copy).then(() => this.#tell());
  }

  async #takeInIndex(): Promise<void> {
    const names = new Set(this.#index?.value.names);
    for (const [name, { followed }] of this.#copies) {
      // One that was just registered here is followed before it is in the index.
      if (names.has(name) || brokerData(followed.value)?.removed === false) continue;
      followed.close();
      this.#copies.delete(name);
      // It may still be at its first reading. Whoever has the name next is followed anew.
      this.#beginning.delete(name);
    }
    this.#tell();
    await Promise.all([...names].map((name) => this.#persist(() => this.follow(name))));
  }

  /** Until what is known is of the newest revision. A page may be missing because a newer one was written meanwhile, or the broker is gone. */
  async #readCatalog(copy: BrokerCopy): Promise<void> {
    await this.#persist(async () => {
      while (copy.revision !== copy.data.catalog.revision && this.#copies.get(copy.data.name) === copy) {
        const { revision, pages: count } = copy.data.catalog;
        const pages = await this.#pages(copy.data.name, revision, count);
        if (pages.length < count && copy.data.catalog.revision === revision)
          throw new Error("the catalog was written anew while it was read");
        if (pages.length < count) continue;
        const records = offeringsIn(pages);
        copy.offerings = new Map(records.map((record) => [record.offering.id, known(record)]));
        copy.sorted = inOrder(records);
        copy.byName = namedIn(copy.sorted);
        copy.revision = revision;
      }
    });
  }

  async #pages(name: string, revision: number, count: number): Promise<readonly CatalogPage[]> {
    const found: CatalogPage[] = [];
    for (let from = 0; from < count; from += pagesAtOnce) {
      const ids = Array.from({ length: Math.min(pagesAtOnce, count - from) }, (_, at) => pageId(revision, from + at));
      const resource = brokerRecords.resource(await this.#journal().read(keys.broker(name), ids));
      for (const id of ids) {
        const page = resource?.parts.get(id);
        if (page !== undefined) found.push(page);
      }
    }
    return found;
  }

  /** While the store does not answer, what is known stays, and it is tried again. */
  async #persist(work: () => Promise<void>): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        return await work();
      } catch {
        await sleep(againMs, undefined, { signal, ref: false }).catch(() => undefined);
      }
    }
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

export function pageId(revision: number, page: number): `page/${string}` {
  return `page/${revision}/${String(page).padStart(4, "0")}`;
}

function namedIn(records: readonly OfferingRecord[]): BrokerCopy["byName"] {
  const named = new Map<string, OfferingRecord[]>();
  for (const record of records) {
    const { name } = record.offering;
    const others = named.get(name);
    if (others === undefined) named.set(name, [record]);
    else others.push(record);
  }
  return named;
}

function known(record: OfferingRecord): KnownOffering {
  return { record, plans: new Map(record.offering.plans.map((plan) => [plan.id, plan])) };
}

function brokerData(data: unknown): BrokerData | undefined {
  return data === null ? undefined : (data as BrokerData);
}

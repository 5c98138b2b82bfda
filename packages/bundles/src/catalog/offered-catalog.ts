import { buildCatalog, LayeredMap, type Service } from "@osbert/broker";
import { findEntry, type IncrementalMerge, incrementalMerge } from "../reconcile/incremental-merge.js";
import type { CatalogEntry, RankedSource } from "../reconcile/merge-sources.js";
import type { SpecRecord } from "../reconcile/records.js";
import type { OfferedBundles } from "./offered-bundles.js";

/** What is offered now: the services in code, and one catalog of all sources. */
export class OfferedCatalog {
  readonly #inCode: readonly Service[];
  readonly #idsInCode: ReadonlySet<string>;
  readonly #bundles: OfferedBundles;
  readonly #merge: IncrementalMerge;
  /** What the merged catalog was made of, by the first names of the sources. */
  readonly #merged = new Map<string, RankedSource>();
  #services: readonly Service[] | undefined;
  #entries: readonly CatalogEntry[] = [];

  /** Services in code with a problem are thrown. */
  constructor(inCode: readonly Service[], bundles: OfferedBundles) {
    const offerings = [...buildCatalog(inCode).services.values()].map(({ offering }) => offering);
    this.#inCode = inCode;
    this.#idsInCode = new Set(offerings.map(({ id }) => id));
    this.#bundles = bundles;
    this.#merge = incrementalMerge([], {
      names: offerings.map(({ name }) => name),
      ids: offerings.flatMap(({ id, plans }) => [id, ...plans.map((plan) => plan.id)]),
    });
  }

  /** `undefined`: that is not known yet. */
  get services(): readonly Service[] | undefined {
    return this.#services;
  }

  /** What of it comes from bundles, in the order of the ids of services. */
  get entries(): readonly CatalogEntry[] {
    return this.#entries;
  }

  entry(serviceId: string): CatalogEntry | undefined {
    return findEntry(this.#entries, serviceId);
  }

  isInCode(serviceId: string): boolean {
    return this.#idsInCode.has(serviceId);
  }

  /** Offers what the sources are now. Answers false if there are sources and nothing is known of any: then it stays as it is. */
  async rebuild(sources: readonly RankedSource[], isConfigured: boolean): Promise<boolean> {
    const isKnown = sources.some(({ stored }) => stored.data.firstComplete !== null);
    // F5-4: told an empty catalog, platforms would drop everything.
    if (!isKnown && this.#inCode.length === 0 && isConfigured) return false;
    for (const source of sources) this.#mergeIn(source);
    const names = new Set(sources.map(({ stored }) => stored.data.identityName));
    for (const name of [...this.#merged.keys()].filter((each) => !names.has(each))) {
      this.#merged.delete(name);
      this.#merge.remove(name);
    }
    const { entries } = this.#merge.catalog;
    const offered = await this.#bundles.services(entries);
    const ids = new Set(offered.length < entries.length ? offered.map(({ id }) => id) : []);
    // Without a pause in between: a request is judged by the entries, and then held against the catalog.
    this.#services = this.#inCode.concat(offered);
    this.#entries = offered.length < entries.length ? entries.filter(({ serviceId }) => ids.has(serviceId)) : entries;
    return true;
  }

  /** At the cost of what has changed: records are written anew, and never changed. */
  #mergeIn(source: RankedSource): void {
    const { data, specs } = source.stored;
    const before = this.#merged.get(data.identityName)?.stored.specs ?? new Map<string, SpecRecord>();
    this.#merge.change(source, LayeredMap.of(specs).differsFrom(before));
    this.#merged.set(data.identityName, source);
  }
}

import {
  type CatalogEntry,
  type MergedCatalog,
  mergeSources,
  nameForms,
  nothingInCode,
  type RankedSource,
  type TakenInCode,
} from "./merge-sources.js";
import { isOffered, type ServiceRecord, type SpecRecord } from "./records.js";

/**
 * `mergeSources` for whoever follows sources as they change: the same catalog, always, at the cost of what has changed. A spec that shares
 * neither id nor name nor a plan's id with any other is put into its place; all else is merged anew.
 */
export interface IncrementalMerge {
  readonly catalog: MergedCatalog;
  /** A source as it is now, with the ids of its specs that are not as they were. */
  change(source: RankedSource, changed: Iterable<string>): MergedCatalog;
  /** By its first name. */
  remove(source: string): MergedCatalog;
}

export function incrementalMerge(given: readonly RankedSource[], inCode = nothingInCode): IncrementalMerge {
  const sources = new Map(given.map((source) => [source.stored.data.identityName, source]));
  /** `undefined`: of what was merged last they were not counted yet. A start does not wait for it: the first change does. */
  let counted: Uses | undefined;
  let catalog: MergedCatalog = { entries: [], conflicts: [] };
  const mergeAll = () => {
    catalog = mergeSources([...sources.values()], inCode);
    counted = undefined;
    return catalog;
  };
  mergeAll();
  return {
    get catalog() {
      return catalog;
    },
    change(source, changed) {
      const name = source.stored.data.identityName;
      const before = sources.get(name);
      const uses = before === undefined ? undefined : (counted ?? usesOf([...sources.values()], inCode));
      sources.set(name, source);
      if (before === undefined || uses === undefined || !isRankedAlike(before, source)) return mergeAll();
      counted = uses;
      const entries = catalog.entries.slice();
      for (const spec of changed) {
        const was = serviceOf(before.stored.specs.get(spec));
        const is = serviceOf(source.stored.specs.get(spec));
        if (was !== undefined) {
          if (!isUsed(uses, was, 1)) return mergeAll();
          uses.names.delete(wantedName(was));
          for (const id of idsOf(was)) uses.ids.delete(id);
          const at = placeOf(entries, was.serviceId);
          if (entries[at]?.serviceId === was.serviceId) entries.splice(at, 1);
        }
        if (is !== undefined) {
          if (!isUsed(uses, is, 0)) return mergeAll();
          use(uses, is);
          const entry = entryOf(source, spec, is);
          if (entry !== null) entries.splice(placeOf(entries, is.serviceId), 0, entry);
        }
      }
      catalog = { entries, conflicts: catalog.conflicts };
      return catalog;
    },
    remove(source) {
      sources.delete(source);
      return mergeAll();
    },
  };
}

/** By how many specs each is claimed of what no two services of a catalog may have in common. */
interface Uses {
  readonly names: Map<string, number>;
  /** Of services and of plans. A plan that is named twice in one service has been refused long before. */
  readonly ids: Map<string, number>;
}

function noUses(): Uses {
  return { names: new Map(), ids: new Map() };
}

function wantedName({ current }: ServiceRecord): string {
  return current.name.normalize("NFC");
}

function idsOf({ serviceId, current }: ServiceRecord): readonly string[] {
  return [serviceId, ...current.plans.map(({ id }) => id)];
}

/** Whether each thing of a service is claimed so many times. */
function isUsed({ names, ids }: Uses, record: ServiceRecord, times: number): boolean {
  return (names.get(wantedName(record)) ?? 0) === times && idsOf(record).every((id) => (ids.get(id) ?? 0) === times);
}

function use({ names, ids }: Uses, record: ServiceRecord): void {
  count(names, wantedName(record));
  for (const id of idsOf(record)) count(ids, id);
}

function count(uses: Map<string, number>, thing: string): void {
  uses.set(thing, (uses.get(thing) ?? 0) + 1);
}

/** Of names that several want, all forms that one of them may be given are in use. */
function usesOf(sources: readonly RankedSource[], inCode: TakenInCode): Uses {
  const uses = noUses();
  for (const name of inCode.names) count(uses.names, name.normalize("NFC"));
  for (const id of inCode.ids) count(uses.ids, id);
  for (const { record } of servicesOf(sources)) use(uses, record);
  const forms: string[] = [];
  for (const { record, source } of servicesOf(sources))
    if ((uses.names.get(wantedName(record)) ?? 0) > 1) forms.push(...otherForms(record, source, uses.names));
  // Only now: what is free is told by what bundles are called, and not by what they may be given.
  for (const form of forms) count(uses.names, form);
  return uses;
}

function* servicesOf(
  sources: readonly RankedSource[],
): Generator<{ readonly record: ServiceRecord; readonly source: string }> {
  for (const { stored } of sources)
    for (const record of stored.specs.values())
      if (record.kind === "service") yield { record, source: stored.data.name };
}

/** All but the wanted one, up to the first with the id in it that no bundle is called: it is given none beyond that. */
function otherForms(record: ServiceRecord, source: string, wanted: ReadonlyMap<string, number>): readonly string[] {
  const forms: string[] = [];
  for (const form of nameForms(record, source)) {
    forms.push(form);
    if (forms.length > 2 && !wanted.has(form)) break;
  }
  return forms.slice(1);
}

function isRankedAlike(one: RankedSource, other: RankedSource): boolean {
  const [before, after] = [one.stored.data, other.stored.data];
  return (
    one.priority === other.priority &&
    one.failover === other.failover &&
    before.name === after.name &&
    before.hidden === after.hidden &&
    (before.firstComplete === null) === (after.firstComplete === null)
  );
}

function serviceOf(record: SpecRecord | undefined): ServiceRecord | undefined {
  return record?.kind === "service" ? record : undefined;
}

function entryOf({ stored: { data } }: RankedSource, spec: string, record: ServiceRecord): CatalogEntry | null {
  if (!isOffered(data, record) || data.firstComplete === null) return null;
  return {
    serviceId: record.serviceId,
    name: record.current.name.normalize("NFC"),
    source: data.identityName,
    spec,
    current: record.current,
    state: record.state.kind === "missing" ? "missing" : "active",
  };
}

/** Of entries in the order of a catalog. */
export function findEntry(entries: readonly CatalogEntry[], serviceId: string): CatalogEntry | undefined {
  const found = entries[placeOf(entries, serviceId)];
  return found?.serviceId === serviceId ? found : undefined;
}

/** Where a service stands, or would. */
function placeOf(entries: readonly CatalogEntry[], serviceId: string): number {
  let [low, high] = [0, entries.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((entries[middle]?.serviceId ?? "") < serviceId) low = middle + 1;
    else high = middle;
  }
  return low;
}

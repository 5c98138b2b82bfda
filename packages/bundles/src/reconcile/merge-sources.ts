import {
  type CurrentRevision,
  isOffered,
  isWithdrawn,
  type ServiceRecord,
  type SourceRank,
  type StoredSource,
} from "./records.js";

/** A source with its place among others. */
export interface RankedSource extends SourceRank {
  readonly stored: StoredSource;
}

/** What the services in code have. They rank before every source. */
export interface TakenInCode {
  readonly names: readonly string[];
  /** Of services and of plans: in a catalog, no two things have one id. */
  readonly ids: readonly string[];
}

export const nothingInCode: TakenInCode = { names: [], ids: [] };

/** A service that is offered, by one spec of one source. */
export interface CatalogEntry {
  readonly serviceId: string;
  /** Unique in the catalog: with the source's name behind where another service has it (F5-60). */
  readonly name: string;
  /** The source, by its first name. */
  readonly source: string;
  readonly spec: string;
  readonly current: CurrentRevision;
  /** `missing`: whether a new instance can be made is asked of the registry (F2). */
  readonly state: "active" | "missing";
}

/** Why a spec that its source would offer is not in the catalog as it is. */
export interface Conflict {
  /** `shadowed`: another spec has its id (F5-58), or a service in code, or a plan. `legacy names alike`: another has its id because names of the predecessor are cut (F5-62). `renamed`: it is offered under another name. */
  readonly kind: "shadowed" | "legacy names alike" | "plan id taken" | "renamed";
  readonly serviceId: string;
  readonly source: string;
  readonly spec: string;
  readonly by: { readonly source: string; readonly spec: string } | "code";
  readonly why: string;
}

export interface MergedCatalog {
  /** By service id. */
  readonly entries: readonly CatalogEntry[];
  readonly conflicts: readonly Conflict[];
}

/**
 * One catalog of all sources. It depends on nothing but what is kept of them, so that all replicas make the same, in whatever order they
 * have read it. Nobody is overwritten: who ranks first keeps an id or a name, also while it has retired, because its instances do.
 */
export function mergeSources(sources: readonly RankedSource[], inCode = nothingInCode): MergedCatalog {
  const conflicts: Conflict[] = [];
  const services = new Map<string, Claim>();
  const later = new Map<string, Claim[]>();
  for (const claim of sources.flatMap(claimsOf).sort(byRank)) {
    const { serviceId } = claim.record;
    const others = later.get(serviceId);
    if (!services.has(serviceId)) services.set(serviceId, claim);
    else if (others === undefined) later.set(serviceId, [claim]);
    else others.push(claim);
  }
  const names = new Map<string, Holder>(inCode.names.map((name) => [name.normalize("NFC"), "code"]));
  const ids = new Map<string, Holder>(inCode.ids.map((id) => [id, "code"]));
  const entries: CatalogEntry[] = [];
  // In the order of ranks, since maps keep it.
  for (const [serviceId, owner] of services) {
    const rivals = later.get(serviceId) ?? [];
    const offered = owner.offered ? owner : rivals.find((rival) => takesOver(rival, owner));
    for (const rival of rivals) if (rival !== offered && rival.offered) conflicts.push(rivalry(rival, owner));
    const holder = ids.get(serviceId);
    if (holder !== undefined) {
      if (offered !== undefined)
        conflicts.push(conflict("shadowed", offered, holder, `${place(holder)} has the id ${serviceId}`));
      continue;
    }
    const taken = owner.record.current.plans.find(({ id }) => ids.has(id));
    if (taken !== undefined) {
      const planHolder = ids.get(taken.id) ?? owner;
      if (offered !== undefined)
        conflicts.push(
          conflict(
            "plan id taken",
            owner,
            planHolder,
            `the id ${taken.id} of its plan ${taken.name} is one of ${place(planHolder)}`,
          ),
        );
      continue;
    }
    ids.set(serviceId, owner);
    for (const { id } of owner.record.current.plans) ids.set(id, owner);
    const wanted = owner.record.current.name.normalize("NFC");
    const name = freeName(owner, names);
    const namesake = names.get(wanted);
    names.set(name, owner);
    if (offered === undefined) continue;
    if (namesake !== undefined)
      conflicts.push(
        conflict("renamed", offered, namesake, `${place(namesake)} is called ${wanted}, so it is called ${name}`),
      );
    entries.push({
      serviceId,
      name,
      source: offered.source,
      spec: offered.spec,
      current: offered.record.current,
      state: offered.record.state.kind === "missing" ? "missing" : "active",
    });
  }
  return { entries: entries.sort((one, other) => compare(one.serviceId, other.serviceId)), conflicts };
}

/** Who has a name or an id. */
type Holder = Claim | "code";

interface Claim {
  readonly source: string;
  readonly sourceName: string;
  readonly spec: string;
  readonly record: ServiceRecord;
  readonly priority: number;
  readonly failover: boolean;
  /** By its own source. */
  readonly offered: boolean;
}

/** What was deleted claims nothing: its instances are gone. */
function claimsOf({ stored: { data, specs }, priority, failover }: RankedSource): readonly Claim[] {
  const claims: Claim[] = [];
  for (const [spec, record] of specs)
    if (record.kind === "service")
      claims.push({
        source: data.identityName,
        sourceName: data.name,
        spec,
        record,
        priority,
        failover,
        // Before the first list was read to its end nobody knows what there is (F5-4).
        offered: isOffered(data, record) && data.firstComplete !== null,
      });
  return claims;
}

/** F5-58: priority, then who was there first; the last two only make it the same everywhere. */
function byRank(one: Claim, other: Claim): number {
  return (
    other.priority - one.priority ||
    one.record.firstSeenAt - other.record.firstSeenAt ||
    compare(one.source, other.source) ||
    compare(one.spec, other.spec)
  );
}

/** F5-59: the same service from elsewhere. What a person has withdrawn is withdrawn everywhere: it is the same content. */
function takesOver(rival: Claim, owner: Claim): boolean {
  if (!rival.offered || !rival.failover || isWithdrawn(owner.record)) return false;
  const { fingerprint, plans } = rival.record.current;
  const { current } = owner.record;
  return (
    fingerprint === current.fingerprint &&
    plans.length === current.plans.length &&
    plans.every(({ id }, index) => id === current.plans[index]?.id)
  );
}

function rivalry(rival: Claim, owner: Claim): Conflict {
  const legacy = rival.record.idFrom === "legacy" || owner.record.idFrom === "legacy";
  if (legacy)
    return conflict(
      "legacy names alike",
      rival,
      owner,
      `${rival.record.current.name} of ${place(rival)} and ${owner.record.current.name} of ${place(owner)} have one id in the legacy scheme; rename one of them`,
    );
  return conflict("shadowed", rival, owner, `${place(owner)} has the id ${rival.record.serviceId}`);
}

function conflict(kind: Conflict["kind"], { record, source, spec }: Claim, by: Holder, why: string): Conflict {
  const whose = by === "code" ? by : { source: by.source, spec: by.spec };
  return { kind, serviceId: record.serviceId, source, spec, by: whose, why };
}

function place(holder: Holder): string {
  return holder === "code" ? "a service in code" : `${holder.spec} in ${holder.sourceName}`;
}

function freeName({ record, sourceName }: Claim, names: ReadonlyMap<string, Holder>): string {
  // It ends: there are more forms than names that are taken.
  for (const form of nameForms(record, sourceName)) if (!names.has(form)) return form;
  throw new Error("unreachable");
}

/**
 * The names that a service may be given, the one that it wants first (F5-60). The third has the id in it, which no other has; but a bundle may be
 * called anything, also what another would be called, so that numbers follow.
 */
export function* nameForms({ current, serviceId }: ServiceRecord, source: string): Generator<string> {
  const wanted = current.name.normalize("NFC");
  yield* [wanted, `${wanted}-${source}`];
  const whole = `${wanted}-${source}-${serviceId}`;
  yield whole;
  for (let number = 2; ; number++) yield `${whole}-${number}`;
}

/** By code units, the same on every machine. */
function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

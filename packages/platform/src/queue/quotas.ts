import type { Journal } from "@osbert/journal";
import { FollowedRules } from "../brokers/followed-rules.js";
import type { InstanceResource } from "../decisions/queue-state.js";
import { PlatformError } from "../errors.js";
import type { Asking, Quotas, QuotaUsage, WantedQuota } from "../platform.js";
import { type InstanceData, instances } from "../records/instance-record.js";
import { type InstanceRef, instanceRef, keys } from "../records/keys.js";
import { isName, nameRule } from "../records/name.js";
import type { PreflightFinding } from "../records/preflight-report.js";
import {
  type Counted,
  countsFor,
  type Quota,
  quotasOf,
  type Reservation,
  reservationRecords,
} from "../records/quota-record.js";

export interface QuotasPorts {
  readonly journal: () => Journal;
  /** Names of all that are registered. */
  readonly brokers: () => Promise<readonly string[]>;
  readonly newId: () => string;
}

/** What quotas say to a request, and how long that counts. */
export interface QuotaVerdict {
  readonly findings: readonly PreflightFinding[];
  /** What is accepted later than this is not covered by it. `null`: no quota is concerned. */
  readonly until: number | null;
  /** When the request is decided: from then on what it asked for counts itself, or there is none. */
  release(): Promise<void>;
}

const largestLimit = 100_000;
const longestText = 1_000;
const instancesAtOnce = 100;
const mostReservations = 1_000;
/** Whoever reserved and was never heard of again keeps the place for so long. A request takes seconds. */
const reservedMs = 5 * 60_000;
/** What is accepted is accepted well before the place is given to others. */
const coveredMs = 4 * 60_000;

const unconcerned: QuotaVerdict = { findings: [], until: null, release: async () => undefined };

/**
 * Quotas are counted, not kept: an instance counts by what its own record says, and so do its bindings, so that a failure, a drop or an end releases it with the very commit
 * that says so (E6), and a killed process leaves nothing to put right. So that two requests do not both see the last place, each reserves one
 * first, in the journal of the space: in that order they count each other, until the instance counts itself.
 *
 * The order is the promise: the reservation is durable before instances are counted, and goes after the instance is accepted. Whoever reserves
 * later finds the reservation, or the instance.
 */
export class JournalQuotas implements Quotas {
  readonly #ports: QuotasPorts;
  readonly #rules: FollowedRules<Quota>;

  constructor(ports: QuotasPorts) {
    this.#ports = ports;
    this.#rules = new FollowedRules({ journal: ports.journal, key: keys.quotas, what: "quota", most: 500 });
  }

  open(): Promise<void> {
    return this.#rules.open();
  }

  close(): void {
    this.#rules.close();
  }

  list(): readonly Quota[] {
    // One that was kept before bindings could be counted does not say what it counts.
    return this.#rules.list().map((quota) => ({ ...quota, counts: quota.counts ?? "instances" }));
  }

  /** Whether bindings are counted in a space at all. */
  countsBindings(space: string): boolean {
    return quotasOf(this.#rules.list(), space).some(({ counts }) => counts === "bindings");
  }

  async set(name: string, wanted: WantedQuota, asking: Asking): Promise<Quota> {
    const { counts = "instances", space = null, broker = null, offering = null, plan = null, limit } = wanted;
    if (counts !== "instances" && counts !== "bindings")
      throw new PlatformError("invalid", "a quota counts instances or bindings");
    if (space !== null && !isName(space)) throw new PlatformError("invalid", `the name of a space ${nameRule}`);
    for (const [what, text] of Object.entries({ broker, offering, plan }))
      if (text !== null && (typeof text !== "string" || text === "" || text.length > longestText))
        throw new PlatformError("invalid", `the ${what} of a quota is a text`);
    if (!Number.isSafeInteger(limit) || limit < 0 || limit > largestLimit)
      throw new PlatformError("invalid", `the limit of a quota is a whole number up to ${largestLimit}`);
    const at = this.#ports.journal().now();
    const by = asking.by.actor.subject;
    return this.#rules.set({ name, counts, space, broker, offering, plan, limit, by, at }, asking);
  }

  remove(name: string, asking: Asking): Promise<void> {
    return this.#rules.remove(name, asking);
  }

  async usage(space: string): Promise<readonly QuotaUsage[]> {
    const quotas = quotasOf(this.list(), space);
    const used = await this.#count(space, quotas);
    return quotas.map((quota) => ({ ...quota, used: placesIn(used.get(quota.name) ?? new Map()) }));
  }

  /** E10-49: reserves a place for an instance of this plan, or a binding of it, where a quota has to say something to it. A dry run looks, and reserves nothing. */
  async reserve({ space, name }: InstanceRef, what: Counted, { by, dryRun = false }: Asking): Promise<QuotaVerdict> {
    if (this.#rules.list().length === 0) return unconcerned;
    const quotas = quotasOf(this.list(), space).filter((quota) => countsFor(quota, what));
    if (quotas.length === 0) return unconcerned;
    const id = this.#ports.newId();
    const mine = { id, instance: name, ...what };
    const { at, before } = await this.#enter(space, mine, by, dryRun);
    const release = async (): Promise<void> => {
      // Whoever cannot be told now forgets it when its time is over.
      if (!dryRun) await this.#leave(space, id, by).catch(() => undefined);
    };
    try {
      const used = await this.#count(space, quotas);
      const findings = quotas.flatMap((quota) => fullness(quota, mine, used.get(quota.name) ?? new Map(), before));
      return { findings, until: at + coveredMs, release };
    } catch (error) {
      await release();
      throw error;
    }
  }

  /** Answers who reserved before. */
  async #enter(
    space: string,
    mine: Omit<Reservation, "at">,
    by: Asking["by"],
    isDry: boolean,
  ): Promise<{ readonly at: number; readonly before: readonly Reservation[] }> {
    const enter = reservationRecords.decide<{ at: number; before: readonly Reservation[] }>((resource, now) => {
      const before = (resource?.data?.reservations ?? []).filter(({ at }) => now - at < reservedMs);
      if (isDry) return { result: { at: now, before } };
      if (before.length >= mostReservations)
        throw new PlatformError("unavailable", "too much is asked for in this space at once; try again");
      const data = { reservations: [...before, { ...mine, at: now }] };
      return { result: { at: now, before }, change: { data, gone: false } };
    });
    return (await this.#ports.journal().transact(keys.reservations(space), enter, { by })).result;
  }

  async #leave(space: string, id: string, by: Asking["by"]): Promise<void> {
    const leave = reservationRecords.decide<null>((resource) => {
      const all = resource?.data?.reservations ?? [];
      const reservations = all.filter((other) => other.id !== id);
      if (reservations.length === all.length) return { result: null };
      return { result: null, change: { data: { reservations }, gone: reservations.length === 0 } };
    });
    await this.#ports.journal().transact(keys.reservations(space), leave, { by });
  }

  /** By quota: the instances of a space that count for it, and how many places each of them takes. Costs a read for each hundred of them. */
  async #count(space: string, quotas: readonly Quota[]): Promise<ReadonlyMap<string, Places>> {
    const used = new Map(quotas.map(({ name }) => [name, new Map<string, number>()]));
    if (quotas.length === 0) return used;
    const named = quotas.map(({ broker }) => broker).filter((broker) => broker !== null);
    const brokers = named.length === quotas.length ? [...new Set(named)] : await this.#ports.brokers();
    for (const broker of brokers) {
      for (let after: string | undefined; ; ) {
        // What is gone has no label any more.
        const page = await this.#ports.journal().find({
          label: { name: "broker", value: broker },
          prefix: keys.instancesOf(space),
          limit: instancesAtOnce,
          ...(after !== undefined && { after }),
        });
        for (const found of page.items) {
          const { key, data, open } = instances.resource(found);
          const instance = instanceRef(key)?.name ?? key;
          const plans = plansOf(data, open);
          for (const quota of quotas) {
            const places = placesOf(quota, data, plans);
            if (places > 0) used.get(quota.name)?.set(instance, places);
          }
        }
        if (page.next === null) break;
        after = page.next;
      }
    }
    return used;
  }
}

type IsPlan = (id: string) => boolean;

/** By the name of the instance. */
type Places = ReadonlyMap<string, number>;

function placesIn(places: Places): number {
  return [...places.values()].reduce((sum, some) => sum + some, 0);
}

/** How many places an instance takes in a quota. Its bindings are those of the plan that it has, until it has another. */
function placesOf(
  { counts, broker, offering, plan }: Quota,
  data: InstanceData,
  [present, ...later]: readonly IsPlan[],
): number {
  if (present === undefined) return 0;
  const isOf = (broker === null || broker === data.broker) && (offering === null || offering === data.offering.id);
  const plans = counts === "bindings" ? [present] : [present, ...later];
  if (!isOf || (plan !== null && !plans.some((isPlan) => isPlan(plan)))) return 0;
  return counts === "bindings" ? data.bindings : 1;
}

/**
 * The plans that an instance has, may have at the broker, or will have if what is open succeeds. What failed, or was called off, has none; what a
 * delete has stopped has one until that is done.
 */
function plansOf(data: InstanceData, open: InstanceResource["open"]): readonly IsPlan[] {
  const present = data.applied?.plan ?? (data.osbId === null ? undefined : data.askedPlan);
  const wanted = open.flatMap(({ kind, cancel, brief }): readonly IsPlan[] => {
    const { plan, paths } = brief;
    const leadsTo = kind === "create" || kind === "adopt" || (kind === "update" && paths.some(isOfPlan));
    if (cancel !== null || !leadsTo || plan === undefined) return [];
    // A long id is shortened in a brief: what begins like it is taken for it.
    return [(id) => id === plan || (plan.endsWith("…") && id.startsWith(plan.slice(0, -1)))];
  });
  return present === undefined ? wanted : [(id) => id === present.id, ...wanted];
}

function isOfPlan(path: string): boolean {
  return path === "/plan" || path === "*";
}

/**
 * E10-50: whoever counts already stays, and takes no more, also if the limit is lower by now. A binding that has just been accepted counts twice until its
 * reservation is gone: never too few.
 */
function fullness(
  quota: Quota,
  mine: Omit<Reservation, "at">,
  used: Places,
  before: readonly Reservation[],
): readonly PreflightFinding[] {
  const isBinding = quota.counts === "bindings";
  if (!isBinding && used.has(mine.instance)) return [];
  const placeOf = ({ instance, binding }: Omit<Reservation, "at">) => JSON.stringify([instance, binding]);
  const reserved = before.filter((other) => countsFor(quota, other) && (isBinding || !used.has(other.instance)));
  const places = new Set(reserved.map(placeOf));
  places.delete(placeOf(mine));
  const taken = placesIn(used) + places.size;
  if (taken < quota.limit) return [];
  const message = `the quota ${quota.name} allows ${quota.limit} ${quota.counts} here, and ${taken} are there or asked for`;
  return [{ severity: "error", rule: "quota", path: null, message }];
}

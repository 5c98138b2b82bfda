import type { Journal, TypedChange, TypedDecide } from "@osbert/journal";
import { changedBroker, newBroker } from "../decisions/register-broker.js";
import { PlatformError } from "../errors.js";
import type { Asking, Brokers, BrokerView, OfferedService, OfferingQuery, RegisterBroker } from "../platform.js";
import { type BrokerData, type BrokerShape, brokerRecords, type OfferingRecord } from "../records/broker-record.js";
import { keys } from "../records/keys.js";
import { isName } from "../records/name.js";
import type { Breaker } from "./breaker.js";
import { type BrokerCopies, mostBrokers } from "./broker-copies.js";
import { checkCertificates } from "./check-certificates.js";
import { instancesOf, openOrphansOf } from "./left-at-broker.js";

export interface RegistrationsPorts {
  readonly journal: () => Journal;
  readonly copies: BrokerCopies;
  readonly breaker: Breaker;
  readonly announce: (name: string) => Promise<void>;
}

/** How long whoever registers or changes a broker waits for its catalog. It goes on being read after that. */
const longestWaitMs = 30_000;
/** Of what keeps a broker from being removed. */
const mostTold = 20;

/** Brokers as the platform's library and API have them. */
export class Registrations implements Brokers {
  readonly #ports: RegistrationsPorts;

  constructor(ports: RegistrationsPorts) {
    this.#ports = ports;
  }

  async register(name: string, wanted: RegisterBroker, { by }: Asking): Promise<BrokerView> {
    const { copies, journal, announce } = this.#ports;
    const first = newBroker(name, wanted, by.actor.subject, journal().now());
    checkCertificates(first);
    if (copies.names().length >= mostBrokers)
      throw new PlatformError("too-many", `at most ${mostBrokers} brokers are registered at a time`);
    const decide: TypedDecide<BrokerShape, null> = (resource, now) => {
      if (resource !== undefined && !(resource.data.removed && resource.open.length === 0))
        throw new PlatformError(
          "exists",
          `there is a broker ${name}${resource.data.removed ? " that is being removed" : ""}`,
        );
      // The revision goes on: a process that has not heard of the removal must not take the old catalog for the new one.
      const catalog = { ...first.catalog, revision: resource?.data.catalog.revision ?? 0 };
      const change: TypedChange<BrokerShape> = {
        data: { ...first, catalog, registeredAt: now, health: { ...first.health, since: now } },
        accept: [{ kind: "follow" }],
        entries: [{ kind: "registered", payload: { url: first.url } }],
      };
      return { result: null, change };
    };
    // The registration first: killed before the index has it, the operation that follows it puts it there.
    await journal().transact(keys.broker(name), brokerRecords.decide(decide), { by });
    await announce(name);
    await copies.follow(name);
    await this.#read(name, first.asked, first.limits.timeoutMs);
    return this.#view(name);
  }

  async change(name: string, wanted: Partial<RegisterBroker>, { by }: Asking): Promise<BrokerView> {
    const after = await this.#decide(name, by, (data) => {
      const changed = changedBroker(data, wanted);
      checkCertificates(changed);
      // Never what it is: it may be a secret.
      return {
        data: changed,
        entries: [{ kind: "registration-changed", payload: { members: Object.keys(wanted).sort() } }],
      };
    });
    await this.#read(name, after.asked, after.limits.timeoutMs);
    return this.#view(name);
  }

  async relist(name: string, { by }: Asking): Promise<BrokerView> {
    const after = await this.ask(name, by);
    await this.#read(name, after.asked, after.limits.timeoutMs);
    return this.#view(name);
  }

  /** Has the catalog read soon, and does not wait for it. */
  ask(name: string, by: Asking["by"]): Promise<BrokerData> {
    return this.#decide(name, by, (data) => ({ data: { ...data, asked: data.asked + 1 } }));
  }

  async remove(name: string, { force = false }: { readonly force?: boolean }, { by }: Asking): Promise<void> {
    const { journal } = this.#ports;
    const key = brokerKey(name);
    if (!force) await this.#refuseWhatIsLeft(name);
    const decide: TypedDecide<BrokerShape, readonly string[] | null> = (resource) => {
      if (resource === undefined || (resource.data.removed && resource.open.length === 0)) return { result: null };
      if (resource.data.removed) throw new PlatformError("busy", `the broker ${name} is being removed`);
      return {
        result: resource.open.map(({ id }) => id),
        change: { data: { ...resource.data, removed: true }, accept: [{ kind: "remove", input: { force } }] },
      };
    };
    const { result: others, accepted } = await journal().transact(key, brokerRecords.decide(decide), { by });
    if (others === null) throw noBroker(name);
    const outcome = await journal().ended(key, accepted[0]?.id ?? "", { withinMs: longestWaitMs });
    if (outcome?.kind === "failed") {
      // It has found some that were made while it was asked for.
      await this.#refuseWhatIsLeft(name);
      throw new PlatformError("busy", outcome.error.message);
    }
    // What followed it is cancelled by then, and may be in the middle of a reading: until it has ended, the name is not free.
    for (const id of others) await journal().ended(key, id, { withinMs: longestWaitMs });
  }

  async read(name: string): Promise<BrokerView | undefined> {
    if (!isName(name)) return undefined;
    const data = brokerRecords.resource(await this.#ports.journal().read(keys.broker(name)))?.data;
    return data === undefined || data.removed ? undefined : this.#viewOf(data);
  }

  async list(): Promise<readonly BrokerView[]> {
    const { copies } = this.#ports;
    return copies.names().flatMap((name) => {
      const data = copies.data(name);
      return data === undefined ? [] : [this.#viewOf(data)];
    });
  }

  offerings(broker?: string): readonly OfferedService[] {
    const { copies } = this.#ports;
    return this.#offered(broker, (name) => copies.offerings(name));
  }

  *offeringsBehind({ broker, name, after }: OfferingQuery): Generator<OfferedService> {
    const { copies } = this.#ports;
    for (const one of broker === undefined ? copies.names() : [broker]) {
      if (after !== undefined && one < after.broker) continue;
      const place = one === after?.broker ? after : undefined;
      for (const record of copies.offeringsBehind(one, place, name)) yield offeredBy(one, record);
    }
  }

  offeringsCalled(idOrName: string, broker?: string): readonly OfferedService[] {
    const { copies } = this.#ports;
    return this.#offered(broker, (name) => copies.offeringsCalled(name, idOrName));
  }

  #offered(
    broker: string | undefined,
    offeringsOf: (name: string) => readonly OfferingRecord[],
  ): readonly OfferedService[] {
    const names = broker === undefined ? this.#ports.copies.names() : [broker];
    return names.flatMap((name) => offeringsOf(name).map((record) => offeredBy(name, record)));
  }

  async #refuseWhatIsLeft(name: string): Promise<void> {
    const journal = this.#ports.journal();
    const instances = (await instancesOf(journal, name, mostTold)).map((key) => key.slice(keys.instances.length));
    if (instances.length > 0)
      throw new PlatformError("has-instances", `the broker ${name} has instances`, { details: { instances } });
    const orphans = await openOrphansOf(journal, name, mostTold);
    if (orphans.length > 0)
      throw new PlatformError("has-orphans", `something may be left at the broker ${name}`, { details: { orphans } });
  }

  /** Changes a registration, and has the broker asked for its catalog at once. */
  async #decide(
    name: string,
    by: Asking["by"],
    decide: (data: BrokerData) => TypedChange<BrokerShape> & { readonly data: BrokerData },
  ): Promise<BrokerData> {
    const decision: TypedDecide<BrokerShape, null> = (resource) => {
      if (resource === undefined || resource.data.removed) throw noBroker(name);
      const hurry = resource.open.filter(({ kind }) => kind === "follow").map(({ id }) => id);
      const change = decide(resource.data);
      after = change.data;
      return { result: null, change: { ...change, hurry } };
    };
    let after: BrokerData | undefined;
    await this.#ports.journal().transact(brokerKey(name), brokerRecords.decide(decision), { by });
    if (after === undefined) throw noBroker(name);
    return after;
  }

  async #read(name: string, asked: number, timeoutMs: number): Promise<void> {
    const { copies } = this.#ports;
    await copies.until(name, ({ catalog }) => catalog.answered >= asked, Math.min(longestWaitMs, timeoutMs + 5_000));
  }

  async #view(name: string): Promise<BrokerView> {
    const view = await this.read(name);
    if (view === undefined) throw noBroker(name);
    return view;
  }

  #viewOf(data: BrokerData): BrokerView {
    const { name, url, authentication, limits, relistMs, registeredBy, registeredAt, health, catalog } = data;
    const { revision, readAt, fault, offerings } = catalog;
    return {
      ...{ name, url, authentication: authentication.kind, limits, relistMs, registeredBy, registeredAt, health },
      catalog: { revision, readAt, fault, offerings },
      waiting: this.#ports.breaker.isPaused(name),
    };
  }
}

function offeredBy(broker: string, { offering, leftAt, plansLeft }: OfferingRecord): OfferedService {
  return { broker, offering, leftAt, plansLeft: Object.keys(plansLeft) };
}

/** A name from outside: what cannot be one is not there. */
function brokerKey(name: string): string {
  if (!isName(name)) throw noBroker(name);
  return keys.broker(name);
}

function noBroker(name: string): PlatformError {
  return new PlatformError("not-found", `there is no broker ${name.slice(0, 100)}`);
}

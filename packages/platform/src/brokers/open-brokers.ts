import type { Journal, OperationKinds } from "@osbert/journal";
import type { Brokers, Freezes, Visibilities } from "../platform.js";
import { brokerRecords } from "../records/broker-record.js";
import { keys } from "../records/keys.js";
import { Breaker, byItself } from "./breaker.js";
import { BrokerCopies, type BrokerIndex, readBrokerIndex } from "./broker-copies.js";
import type { BrokerPort } from "./broker-port.js";
import { followBroker } from "./follow-broker.js";
import { FollowedFreezes } from "./freezes.js";
import { PlanSchemas } from "./plan-schemas.js";
import { Registrations } from "./registrations.js";
import { removeBroker } from "./remove-broker.js";
import { FollowedVisibilities } from "./visibilities.js";

export interface OpenBrokersOptions {
  /** Asked only from `open` on: the journal is opened with the kinds of this. */
  readonly journal: () => Journal;
  readonly random?: () => number;
}

/**
 * Registered brokers, in this process. In this order: `openBrokers`, `openJournal` with its kinds among others, `open`, `journal.start`; at the end
 * `close`, `journal.stop`.
 */
export interface OpenedBrokers {
  readonly kinds: OperationKinds;
  readonly port: BrokerPort;
  readonly brokers: Brokers;
  readonly freezes: Freezes;
  readonly visibilities: Visibilities;
  /** Takes copies of all that is registered, and follows them. */
  open(): Promise<void>;
  close(): void;
}

export function openBrokers({ journal, random = Math.random }: OpenBrokersOptions): OpenedBrokers {
  const copies = new BrokerCopies(journal);
  const breaker = new Breaker(journal, copies);
  const schemas = new PlanSchemas();
  const freezes = new FollowedFreezes(journal);
  const visibilities = new FollowedVisibilities(journal);
  const announce = (name: string) => changeIndex(journal(), (names) => [...new Set([...names, name])].sort());
  const withdraw = (name: string) => changeIndex(journal(), (names) => names.filter((other) => other !== name));
  const registrations = new Registrations({ journal, copies, breaker, announce });
  return {
    kinds: brokerRecords.kinds({
      follow: followBroker({ journal, copies, breaker, announce, random }),
      remove: removeBroker({ journal, breaker, withdraw }),
    }),
    port: {
      broker: (name) => copies.data(name),
      namesOf: (name) => copies.namesOf(name),
      offering: (broker, id) => copies.offering(broker, id),
      plan: (broker, offering, plan) => copies.plan(broker, offering, plan),
      client: (name) => copies.client(name),
      saw: (name, answer, message) => breaker.saw(name, answer, message),
      sawBindsCollide: (name, offering) => breaker.sawBindsCollide(name, offering),
      checkParameters: (plan, use, parameters) => schemas.check(plan, use, parameters),
      freezes: () => freezes.list(),
      visibilities: () => visibilities.list(),
      relist: async (name) => (await registrations.ask(name, byItself)).asked,
    },
    brokers: registrations,
    freezes,
    visibilities: {
      list: () => visibilities.list(),
      set: (name, wanted, asking) => visibilities.setRule(name, wanted, asking),
      remove: (name, asking) => visibilities.remove(name, asking),
    },
    async open() {
      await breaker.open();
      await freezes.open();
      await visibilities.open();
      await copies.open();
    },
    close() {
      breaker.close();
      copies.close();
      freezes.close();
      visibilities.close();
    },
  };
}

async function changeIndex(journal: Journal, decide: (names: readonly string[]) => readonly string[]): Promise<void> {
  await journal.transact(
    keys.brokerIndex,
    (resource) => {
      const { names } = readBrokerIndex(resource?.data ?? null);
      const after: BrokerIndex = { names: decide(names) };
      return after.names.length === names.length ? { result: null } : { result: null, change: { data: { ...after } } };
    },
    { by: byItself },
  );
}

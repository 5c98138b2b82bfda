import type { AnswerClass, ServicePlan } from "@osbert/protocol";
import type { Client } from "@osbert/protocol/client";
import type { CheckParameters } from "../decisions/preflight.js";
import type { BrokerData, OfferingRecord } from "../records/broker-record.js";
import type { Freeze } from "../records/freeze-record.js";
import type { Visibility } from "../records/visibility-record.js";

/** What decisions and operations need of registered brokers. All of it is answered from this process's copies, but for the calls. */
export interface BrokerPort {
  broker(name: string): BrokerData | undefined;
  /** This name, and all others under which what answers at the same URL is registered: they share the ids of instances (E10-62). */
  namesOf(broker: string): readonly string[];
  /** By id; also what left the catalog. */
  offering(broker: string, id: string): OfferingRecord | undefined;
  plan(broker: string, offering: string, plan: string): ServicePlan | undefined;
  /** Speaks to it where it is now, with the credentials that it has now. `undefined`: it is not registered. */
  client(broker: string): Client | undefined;
  /** Told after every call: health, and the pause of the broker's lane while it cannot be reached or refuses the credentials. */
  saw(broker: string, answer: AnswerClass, message: string | null): void;
  /** A broker that answered ConcurrencyError to a bind beside another. */
  sawBindsCollide(broker: string, offering: string): void;
  /** What a plan's schema says to parameters: compiled once, and kept as long as there is room. */
  readonly checkParameters: CheckParameters;
  /** All freezes that there are; `freezeOf` tells which one holds for an instance. */
  freezes(): readonly Freeze[];
  /** What is offered in some spaces only; `isVisible` tells of a plan. */
  visibilities(): readonly Visibility[];
  /** Has the catalog read again soon, and does not wait for that: it is done when `catalog.answered` of the broker has got to the answer. */
  relist(broker: string): Promise<number>;
}

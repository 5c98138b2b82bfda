import type { Journal } from "@osbert/journal";
import type { BrokerPort } from "../brokers/broker-port.js";
import type { InstanceData, IntentInput } from "../records/instance-record.js";
import type { Pauses } from "./pauses.js";

/** What playing a queue takes besides the operation itself. */
export interface RunPorts {
  readonly brokers: BrokerPort;
  /** It is opened with the kinds that are made of this, so it is asked for only when one of them runs. */
  readonly journal: () => Pick<Journal, "now" | "read" | "find" | "transact">;
  /** Ids at brokers and of requests: never one twice. */
  readonly newId: () => string;
  readonly random: () => number;
  readonly pauses: Pauses;
  /** Looks ahead once more before anything is sent. Answers what is wrong now, in a sentence; `null`: nothing. */
  readonly recheck: (operation: RecheckedOperation) => string | null;
}

export interface RecheckedOperation {
  readonly key: string;
  readonly input: IntentInput;
  readonly data: InstanceData;
}

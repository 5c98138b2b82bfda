import type { Journal } from "@osbert/journal";
import type { BrokerPort } from "../brokers/broker-port.js";
import { leftIdLabelName, osbIdLabel, osbIdLabelName } from "../records/instance-labels.js";
import { type InstanceData, instances } from "../records/instance-record.js";
import { keys } from "../records/keys.js";

/** Which id at which broker: by all names under which that is registered, and where it is, which is all that is left of names that were removed. */
export interface OsbId {
  readonly brokers: readonly string[];
  /** `undefined`: it is not registered. */
  readonly url: string | undefined;
  readonly osbId: string;
}

export function osbIdAt(port: Pick<BrokerPort, "broker" | "namesOf">, broker: string, osbId: string): OsbId {
  return { brokers: port.namesOf(broker), url: port.broker(broker)?.url, osbId };
}

/** The key of an instance that has this id at this broker, or may, and of which it is so; `undefined`: there is none. */
export async function findOwner(
  journal: Pick<Journal, "find">,
  { brokers, url, osbId }: OsbId,
  is: (key: string, data: InstanceData) => boolean,
): Promise<string | undefined> {
  const has = ({ osbId: own, adoptingId }: InstanceData) => own === osbId || adoptingId === osbId;
  const find = async (name: string, value: string, isThere: (data: InstanceData) => boolean) => {
    const { items } = await journal.find({ label: { name, value }, prefix: keys.instances });
    const owner = items.find((resource) => {
      const { key, data } = instances.resource(resource);
      return isThere(data) && has(data) && is(key, data);
    });
    return owner?.key;
  };
  for (const broker of brokers) {
    const owner = await find(osbIdLabelName, osbIdLabel(broker, osbId), (data) => data.broker === broker);
    if (owner !== undefined) return owner;
  }
  return url === undefined
    ? undefined
    : find(leftIdLabelName, osbIdLabel(url, osbId), ({ leftAtUrl }) => leftAtUrl === url);
}

import type { Journal } from "@osbert/journal";
import { osbIdLabel, osbIdLabelName } from "../records/instance-labels.js";
import { type InstanceData, instances } from "../records/instance-record.js";
import { keys } from "../records/keys.js";

/** Which id at which broker: by all names under which that is registered. */
export interface OsbId {
  readonly brokers: readonly string[];
  readonly osbId: string;
}

/** The key of an instance that has this id at this broker, or may, and of which it is so; `undefined`: there is none. */
export async function findOwner(
  journal: Pick<Journal, "find">,
  { brokers, osbId }: OsbId,
  is: (key: string, data: InstanceData) => boolean,
): Promise<string | undefined> {
  for (const broker of brokers) {
    const label = { name: osbIdLabelName, value: osbIdLabel(broker, osbId) };
    const { items } = await journal.find({ label, prefix: keys.instances });
    const owner = items.find(({ key, ...resource }) => {
      const { data } = instances.resource({ key, ...resource });
      return data.broker === broker && (data.osbId === osbId || data.adoptingId === osbId) && is(key, data);
    });
    if (owner !== undefined) return owner.key;
  }
  return undefined;
}

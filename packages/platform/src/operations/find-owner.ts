import type { Journal } from "@osbert/journal";
import { osbIdLabel, osbIdLabelName } from "../records/instance-labels.js";
import { type InstanceData, instances } from "../records/instance-record.js";
import { keys } from "../records/keys.js";

/** Which id at which broker. */
export interface OsbId {
  readonly broker: string;
  readonly osbId: string;
}

/** The key of an instance that has this id at this broker, or may, and of which it is so; `undefined`: there is none. */
export async function findOwner(
  journal: Pick<Journal, "find">,
  { broker, osbId }: OsbId,
  is: (key: string, data: InstanceData) => boolean,
): Promise<string | undefined> {
  const label = { name: osbIdLabelName, value: osbIdLabel(broker, osbId) };
  const { items } = await journal.find({ label, prefix: keys.instances });
  return items.find(({ key, ...resource }) => {
    const { data } = instances.resource({ key, ...resource });
    return data.broker === broker && (data.osbId === osbId || data.adoptingId === osbId) && is(key, data);
  })?.key;
}

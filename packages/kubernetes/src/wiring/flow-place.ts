import { type InstanceInfo, Permanent, type Work } from "@osbert/broker";
import { namespaceOf } from "../applications/platform-namespace.js";
import { flowId } from "../flows/flow-record.js";
import { text } from "../flows/observed.js";

/** Where a flow is kept: its id, and its namespace. */
export interface FlowPlace {
  readonly flow: string;
  readonly namespace: string;
  readonly platform: string;
  readonly instance: string;
  /** What its user calls it. */
  readonly instanceName?: string;
}

const longestName = 200;

/** Of an instance, whose platform is its namespace: see `namespaceOf`. */
export function flowPlace({ platform, id, context }: Pick<InstanceInfo, "platform" | "id" | "context">): FlowPlace {
  const namespace = namespaceOf(platform);
  if (namespace === undefined) throw new Permanent("its platform has not asked for it under the path of a namespace");
  const instanceName = text(context.instance_name, longestName);
  const place = { flow: flowId(platform, id), namespace, platform, instance: id };
  return instanceName === undefined ? place : { ...place, instanceName };
}

/** Higher for later operations of an instance: the number of the entry that accepted it. */
export function operationNumber({ id }: Pick<Work, "id">): number {
  return Number(id.split("-", 1)[0]);
}

import { type InstanceInfo, Permanent, type Work } from "@osbert/broker";
import { flowId } from "../flows/flow-record.js";

/** Where a flow is kept: its id, and its namespace. */
export interface FlowPlace {
  readonly flow: string;
  readonly namespace: string;
  readonly platform: string;
  readonly instance: string;
}

/** The namespace is the path under which its platform asks; where all ask under one, what the platform says of the place. */
export function flowPlace({ platform, id, context }: InstanceInfo): FlowPlace {
  const said = context.namespace;
  const namespace = platform !== "" ? platform : typeof said === "string" ? said : "";
  if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace))
    throw new Permanent("the platform does not say in which namespace the instance is");
  return { flow: flowId(platform, id), namespace, platform, instance: id };
}

/** Higher for later operations of an instance: the number of the entry that accepted it. */
export function operationNumber({ id }: Pick<Work, "id">): number {
  return Number(id.split("-", 1)[0]);
}

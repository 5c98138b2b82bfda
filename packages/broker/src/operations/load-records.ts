import { Permanent, RetryLater } from "@osbert/journal";
import type { OfferedService } from "../catalog/offered-service.js";
import { type BindingRecord, bindingId, isBindingPart } from "../records/binding-record.js";
import { type InstanceAddress, instanceAddress } from "../records/instance-key.js";
import { type InstanceRecord, instancePart, instanceParts, revisionOf } from "../records/instance-record.js";
import type { InstanceOperation } from "../records/instance-resource.js";
import type { BindingInfo, InstanceInfo } from "../service/service.js";
import type { RunPorts } from "./run-ports.js";

/** What an operation is about: the record of its instance, and the service whose functions are called. */
export interface LoadedInstance {
  readonly record: InstanceRecord;
  readonly service: OfferedService;
  readonly instance: InstanceInfo;
}

export interface LoadedBinding extends LoadedInstance {
  /** Its id. */
  readonly binding: string;
  readonly bindingRecord: BindingRecord;
}

export async function loadInstance({ serviceOf }: RunPorts, operation: InstanceOperation): Promise<LoadedInstance> {
  const record = await currentInstance(operation);
  if (record === undefined) throw new Permanent("the record of the instance is missing");
  const { serviceId, planId, organizationGuid, spaceGuid, context } = record;
  const service = await serviceAt(serviceOf, serviceId, operation);
  // Another replica may have it; if none has, it is for the operator to bring it back.
  if (service === undefined)
    throw new RetryLater("this broker does not have the service of the instance", { afterMs: 30_000 });
  const { platform, instance: id } = instanceAddress(operation.key) as InstanceAddress;
  const instance = { id, platform, serviceId, planId, organizationGuid, spaceGuid, context };
  return { record, service, instance };
}

async function serviceAt(serviceOf: RunPorts["serviceOf"], serviceId: string, operation: InstanceOperation) {
  const own = revisionOf(operation.data);
  // An update may lead to another revision: that one does it.
  const leadsTo = operation.kind === "update" ? operation.input.revision : undefined;
  const revision = leadsTo === undefined ? own : leadsTo;
  try {
    return await serviceOf(serviceId, revision);
  } catch (cause) {
    throw new RetryLater(`revision ${revision} of the instance's service cannot be had`, { afterMs: 30_000, cause });
  }
}

export async function loadBinding(ports: RunPorts, operation: InstanceOperation): Promise<LoadedBinding> {
  const loaded = await loadInstance(ports, operation);
  const bindingRecord = await currentBinding(operation);
  if (bindingRecord === undefined) throw new Permanent("the record of the binding is missing");
  return { ...loaded, binding: bindingId(operation.part) ?? "", bindingRecord };
}

/** As it is now, with what was saved meanwhile. */
export async function currentInstance(operation: InstanceOperation): Promise<InstanceRecord | undefined> {
  return (await operation.parts(instanceParts)).get(instancePart);
}

/** The same of the binding that the operation is about. */
export async function currentBinding(operation: InstanceOperation): Promise<BindingRecord | undefined> {
  const { part } = operation;
  return isBindingPart(part) ? (await operation.parts([part])).get(part) : undefined;
}

/** The plan's name; of a plan that is not offered any more, its id. */
export function planName(service: OfferedService, planId: string): string {
  return service.plans.get(planId)?.name ?? planId;
}

export function toBindingInfo(id: string, { appGuid, bindResource, context }: BindingRecord): BindingInfo {
  return { id, appGuid, bindResource, context };
}

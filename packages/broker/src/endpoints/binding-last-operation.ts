import { BrokerError } from "@osbert/protocol";
import type { Answer } from "@osbert/server";
import { bindingPart, bindingRecord } from "../records/binding-record.js";
import { instanceKey } from "../records/instance-key.js";
import { instanceData } from "../records/instance-record.js";
import { instanceResource } from "../records/instance-resource.js";
import { bindingOperation } from "../records/open-operations.js";
import type { EndpointPorts, VerbRequest } from "./endpoint.js";
import { optionalText } from "./fields.js";
import { ended, endedEarlier, inProgress, polled } from "./last-operation.js";

/** GET …/service_bindings/:binding/last_operation. */
export async function bindingLastOperation(ports: EndpointPorts, request: VerbRequest): Promise<Answer> {
  const { caller, instance, binding, query } = request;
  const operation = optionalText(query, "operation");
  const key = instanceKey(caller.platform, instance);
  const part = bindingPart(binding);
  const resource = instanceResource.resource(await ports.journal.read(key, [part]));
  const data = instanceData(resource);
  const record = bindingRecord(resource, binding);
  const open =
    operation === null
      ? bindingOperation(resource, part)
      : resource?.open.find((candidate) => candidate.id === operation && candidate.part === part);
  if (open !== undefined) return polled(ports, inProgress(open));
  const removed = data?.removed.findLast(([id]) => id === binding)?.[1];
  const last = record?.last ?? removed;
  if (last != null && (operation === null || last.id === operation)) return polled(ports, ended(last));
  const earlier = operation === null ? undefined : await endedEarlier(ports, key, operation, part);
  if (earlier !== undefined) return polled(ports, earlier);
  if (removed?.verb === "unbind") throw new BrokerError("gone", "the binding is gone");
  if (record === undefined) throw new BrokerError("not-found", "there is no such binding");
  throw new BrokerError("bad-request", "operation is not an operation on this binding");
}

import { BrokerError } from "@osbert/protocol";
import type { Answer } from "@osbert/server";
import { instanceKey } from "../records/instance-key.js";
import { instanceData } from "../records/instance-record.js";
import { instanceResource } from "../records/instance-resource.js";
import { instanceOperation } from "../records/open-operations.js";
import type { EndpointPorts, VerbRequest } from "./endpoint.js";
import { optionalText } from "./fields.js";
import { ended, endedEarlier, inProgress, polled } from "./last-operation.js";

/** GET /v2/service_instances/:instance/last_operation. */
export async function instanceLastOperation(ports: EndpointPorts, request: VerbRequest): Promise<Answer> {
  const operation = optionalText(request.query, "operation");
  const key = instanceKey(request.caller.platform, request.instance);
  const resource = instanceResource.resource(await ports.journal.read(key));
  const data = instanceData(resource);
  if (resource === undefined || data === undefined) throw new BrokerError("not-found", "there is no such instance");
  const open =
    operation === null
      ? instanceOperation(resource)
      : resource.open.find(({ id, part }) => id === operation && part === null);
  if (open !== undefined) return polled(ports, inProgress(open));
  // B6: of a deleted instance, only as long as the operation itself is kept.
  const isKept = data.phase !== "gone" || resource.last !== null;
  if (isKept && data.last !== null && (operation === null || data.last.id === operation))
    return polled(ports, ended(data.last));
  const earlier = operation === null ? undefined : await endedEarlier(ports, key, operation, null);
  if (earlier !== undefined) return polled(ports, earlier);
  // LOP-07: a 410 says that a delete has succeeded; a provision that was refused has left no instance.
  if (data.phase === "gone" && data.last?.verb === "deprovision") throw new BrokerError("gone", "the instance is gone");
  if (data.phase === "gone") throw new BrokerError("not-found", "there is no such instance");
  throw new BrokerError("bad-request", "operation is not an operation on this instance");
}

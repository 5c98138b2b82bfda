import { BrokerError } from "@osbert/protocol";
import type { Answer } from "@osbert/server";
import { concurrencyError } from "../decisions/concurrency.js";
import { bindingPart, bindingRecord } from "../records/binding-record.js";
import { instanceKey } from "../records/instance-key.js";
import { instanceData } from "../records/instance-record.js";
import { instanceResource } from "../records/instance-resource.js";
import { answer } from "./answer.js";
import { bindingForVersion } from "./binding-for-version.js";
import type { EndpointPorts, VerbRequest } from "./endpoint.js";

/** GET …/service_bindings/:binding. */
export async function fetchBinding(ports: EndpointPorts, request: VerbRequest): Promise<Answer> {
  const { caller, instance, binding } = request;
  const key = instanceKey(caller.platform, instance);
  const resource = instanceResource.resource(await ports.journal.read(key, [bindingPart(binding)]));
  const data = instanceData(resource);
  const record = bindingRecord(resource, binding);
  const isThere = record?.phase === "ready" || record?.phase === "deleting";
  if (data === undefined || !isThere) throw new BrokerError("not-found", "there is no such binding");
  if (record.phase === "deleting") throw concurrencyError.bindingBusy("unbind");
  const offering = ports.catalog().services.get(data.serviceId)?.offering;
  if (offering?.bindings_retrievable === false)
    throw new BrokerError("not-found", "bindings of this service cannot be fetched");
  return answer("fetched", { ...bindingForVersion(caller.apiVersion, record.binding), parameters: record.parameters });
}

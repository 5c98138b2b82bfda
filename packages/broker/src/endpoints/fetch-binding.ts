import { BrokerError } from "@osbert/protocol";
import type { Answer } from "@osbert/server";
import type { BrokerCatalog } from "../catalog/catalog.js";
import { concurrencyError } from "../decisions/concurrency.js";
import { bindingPart, bindingRecord } from "../records/binding-record.js";
import { instanceKey } from "../records/instance-key.js";
import { instanceData, revisionOf } from "../records/instance-record.js";
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
  const isKeptBack = (catalog: BrokerCatalog) =>
    catalog.services.get(data.serviceId)?.offering.bindings_retrievable === false;
  // What is offered now says it of instances that are made now; others go by their own revision.
  if (isKeptBack(ports.catalog()) && isKeptBack(await ports.catalogOf(data.serviceId, revisionOf(data))))
    throw new BrokerError("not-found", "bindings of this service cannot be fetched");
  return answer("fetched", { ...bindingForVersion(caller.apiVersion, record.binding), parameters: record.parameters });
}

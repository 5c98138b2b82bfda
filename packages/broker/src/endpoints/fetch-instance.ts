import { BrokerError } from "@osbert/protocol";
import type { Answer } from "@osbert/server";
import { concurrencyError } from "../decisions/concurrency.js";
import { instanceKey } from "../records/instance-key.js";
import { instanceData, instanceParts, instanceRecord } from "../records/instance-record.js";
import { instanceResource } from "../records/instance-resource.js";
import { answer, instanceBody } from "./answer.js";
import type { EndpointPorts, VerbRequest } from "./endpoint.js";
import { laidOver } from "./present-metadata.js";

/** GET /v2/service_instances/:instance. */
export async function fetchInstance(ports: EndpointPorts, { caller, instance }: VerbRequest): Promise<Answer> {
  const key = instanceKey(caller.platform, instance);
  const resource = instanceResource.resource(await ports.journal.read(key, instanceParts));
  const data = instanceData(resource);
  const record = instanceRecord(resource);
  const isThere = data?.phase === "ready" || data?.phase === "deleting";
  if (!isThere || record === undefined) throw new BrokerError("not-found", "there is no such instance");
  if (data.phase === "deleting") throw concurrencyError.instanceBusy("deprovision");
  const offering = ports.catalog().services.get(record.serviceId)?.offering;
  if (offering?.instances_retrievable === false)
    throw new BrokerError("not-found", "instances of this service cannot be fetched");
  const { platform } = caller;
  const present = await ports.presentMetadata?.({ platform, instance }, record.serviceId);
  return answer("fetched", {
    service_id: record.serviceId,
    plan_id: record.planId,
    ...instanceBody(record.dashboardTold, laidOver(record.metadata, present)),
    parameters: record.parameters,
    ...(record.maintenanceVersion !== null && { maintenance_info: { version: record.maintenanceVersion } }),
  });
}

import type { BrokerCatalog } from "../catalog/catalog.js";
import type { InstanceRecord } from "../records/instance-record.js";
import type { InstanceInfo } from "../service/service.js";
import type { VerbRequest } from "./endpoint.js";

/** The instance as functions and hooks see it. */
export function instanceInfo({ instance, caller }: VerbRequest, record: InstanceRecord): InstanceInfo {
  const { serviceId, planId, organizationGuid, spaceGuid, context } = record;
  return { id: instance, platform: caller.platform, serviceId, planId, organizationGuid, spaceGuid, context };
}

/** Of a plan that is not offered any more, its id. */
export function planName({ services }: BrokerCatalog, { serviceId, planId }: InstanceRecord): string {
  return services.get(serviceId)?.plans.get(planId)?.name ?? planId;
}

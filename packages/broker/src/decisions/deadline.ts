import type { BrokerCatalog } from "../catalog/catalog.js";
import type { Verb } from "../service/verb.js";

/** From a request to the end of what it began, unless the service says otherwise. */
export const defaultDeadlineMs = 24 * 60 * 60 * 1_000;

export function deadlineMsOf(catalog: BrokerCatalog, verb: Verb, serviceId: string): number {
  return catalog.services.get(serviceId)?.service.deadlineMs?.[verb] ?? defaultDeadlineMs;
}

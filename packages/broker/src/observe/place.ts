import { bindingPrefix } from "../bindings/binding-record.js";
import type { BrokerCatalog } from "../catalog/catalog.js";
import type { InstancePlace, OperationPlace } from "./event.js";

/** The instance that a resource of the journal is: the reverse of `instanceKey`. */
export function instancePlace(key: string): InstancePlace {
  const slash = key.indexOf("/");
  return { platform: decodeURIComponent(key.slice(0, slash)), instance: key.slice(slash + 1) };
}

/** Where an operation belongs, in the names of the catalog as it is now. */
export function operationPlace(
  { key, part, labels }: { key: string; part: string | null; labels: Readonly<Record<string, string>> },
  catalog: BrokerCatalog,
): OperationPlace {
  const service = catalog.services.get(labels.service ?? "");
  return {
    ...instancePlace(key),
    binding: part?.startsWith(bindingPrefix) ? part.slice(bindingPrefix.length) : null,
    service: service?.offering.name ?? null,
    plan: service?.plans.get(labels.plan ?? "")?.name ?? null,
  };
}

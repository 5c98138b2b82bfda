import type { BrokerCatalog } from "../catalog/catalog.js";
import { bindingId } from "../records/binding-record.js";
import { instanceAddress } from "../records/instance-key.js";
import type { InstancePlace, OperationPlace } from "./event.js";

/** The instance that a resource of the journal is; of one that is none, its key. */
export function instancePlace(key: string): InstancePlace {
  return instanceAddress(key) ?? { platform: "", instance: key };
}

/** Where an operation belongs, in the names of the catalog as it is now. */
export function operationPlace(
  { key, part, labels }: { key: string; part: string | null; labels: Readonly<Record<string, string>> },
  catalog: BrokerCatalog,
): OperationPlace {
  const service = catalog.services.get(labels.service ?? "");
  return {
    ...instancePlace(key),
    binding: bindingId(part),
    service: service?.offering.name ?? null,
    plan: service?.plans.get(labels.plan ?? "")?.name ?? null,
  };
}

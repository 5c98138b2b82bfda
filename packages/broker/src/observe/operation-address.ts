import type { BrokerCatalog } from "../catalog/catalog.js";
import { bindingId } from "../records/binding-record.js";
import { addressOrKey, type InstanceAddress } from "../records/instance-key.js";

/** Where an operation belongs, in names. */
export interface OperationAddress extends InstanceAddress {
  readonly binding: string | null;
  /** The service's name; `null` if the catalog has it no more. */
  readonly service: string | null;
  readonly plan: string | null;
}

/** In the names of the catalog as it is now. */
export function operationAddress(
  { key, part, labels }: { key: string; part: string | null; labels: Readonly<Record<string, string>> },
  catalog: BrokerCatalog,
): OperationAddress {
  const service = catalog.services.get(labels.service ?? "");
  return {
    ...addressOrKey(key),
    binding: bindingId(part),
    service: service?.offering.name ?? null,
    plan: service?.plans.get(labels.plan ?? "")?.name ?? null,
  };
}

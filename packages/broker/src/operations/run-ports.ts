import type { BrokerCatalog } from "../catalog/catalog.js";
import type { OfferedService } from "../catalog/offered-service.js";
import type { ServiceJudge } from "../catalog/service-source.js";
import type { BindingPart, BindingRecord } from "../records/binding-record.js";
import type { PassedOver } from "../records/forced-result.js";

/** What running takes besides the journal: what is offered, and the parts of an instance. */
export interface RunPorts {
  /** The service of an instance, at the instance's revision. Rejects where that cannot be told now. */
  readonly serviceOf: (
    serviceId: string,
    revision: string | null,
  ) => Promise<OfferedService | undefined> | OfferedService | undefined;
  /** What is offered now. */
  readonly catalog: () => BrokerCatalog;
  /** What the source of the services says of requests. */
  readonly judge: ServiceJudge | undefined;
  /** The store's clock. */
  readonly now: () => number;
  readonly bindingsOf: (key: string) => Promise<readonly { readonly id: BindingPart; readonly value: BindingRecord }[]>;
  /** Told of a forced deletion that has passed something over, right before it ends. */
  readonly passedOver: (key: string, operation: string, calls: readonly PassedOver[]) => void;
}

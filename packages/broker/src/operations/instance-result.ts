import { Permanent } from "@osbert/journal";
import type { JsonObject } from "@osbert/protocol";
import type { OfferedService } from "../catalog/offered-service.js";
import type { InstanceOperation, InstanceResult, UpdateRequest } from "../records/instance-resource.js";
import type { Prepared, ProvisionResult } from "../service/service.js";
import { checkInstance } from "./check-instance.js";
import { checkState } from "./check-state.js";
import { currentInstance } from "./load-records.js";

/** Whether what `provision` or `update` returned, or left behind, is what later functions and platforms may be given. */
export async function checkInstanceResult(
  operation: InstanceOperation,
  verb: "provision" | "update",
  { service, validateState }: OfferedService,
  result: ProvisionResult<undefined> | undefined,
): Promise<void> {
  const malformed = checkInstance(result);
  if (malformed !== null) throw new Permanent(`${verb} returned what cannot be given out: ${malformed}`);
  await checkState(verb, {
    returned: result?.state,
    kept: async () => (await currentInstance(operation))?.state ?? null,
    validate: service.state === undefined ? undefined : validateState,
  });
}

/** `told`: what the first answer has carried, or the platform has waited for. */
export function toInstanceResult(
  result: ProvisionResult<undefined> | undefined,
  update: UpdateRequest | null,
  told: Prepared | undefined,
): InstanceResult {
  return {
    state: (result?.state as JsonObject | undefined) ?? null,
    dashboardUrl: result?.dashboardUrl ?? null,
    dashboardTold: told?.dashboardUrl ?? null,
    metadata: result?.metadata ?? null,
    update,
  };
}

import type { PlanRef } from "../records/instance-record.js";
import type { InstanceOperation } from "./instance-operation.js";
import type { RunPorts } from "./run-ports.js";

/** The maintenance version that the plan has once the catalog was read again. Recorded: what is sent again must be the same. */
export function refreshedMaintenance(
  ports: RunPorts,
  operation: InstanceOperation,
  plan: PlanRef,
): Promise<string | null> {
  const { broker, offering } = operation.data;
  return operation.step("maintenance version of now", async () => {
    await ports.brokers.relist(broker);
    return ports.brokers.plan(broker, offering.id, plan.id)?.maintenance_info?.version ?? null;
  });
}

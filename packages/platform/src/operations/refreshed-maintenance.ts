import type { PlanRef } from "../records/instance-record.js";
import type { InstanceOperation } from "./instance-operation.js";
import type { RunPorts } from "./run-ports.js";

/** A catalog that cannot be read is not waited for any longer: what is known of it counts. */
const longestReadingMs = 120_000;
const lookMs = 250;

/** The maintenance version that the plan has once the catalog was read again. Recorded: what is sent again must be the same. */
export async function refreshedMaintenance(
  { brokers }: RunPorts,
  operation: InstanceOperation,
  plan: PlanRef,
  /** Of several attempts: each asks anew. */
  which = "",
): Promise<string | null> {
  const { broker, offering } = operation.data;
  const asked = await operation.step(`the catalog is to be read again${which}`, () => brokers.relist(broker));
  // Another process may read it: this one's copy tells when it has come.
  await operation.poll(
    `the catalog was read again${which}`,
    ({ elapsedMs }) => {
      const answered = brokers.broker(broker)?.catalog.answered ?? 0;
      return answered >= asked || elapsedMs >= longestReadingMs ? true : undefined;
    },
    { everyMs: lookMs },
  );
  return operation.step(
    `maintenance version of now${which}`,
    () => brokers.plan(broker, offering.id, plan.id)?.maintenance_info?.version ?? null,
  );
}

import type { CreateResult } from "../records/instance-record.js";
import { failure } from "./failure.js";
import type { InstanceOperation } from "./instance-operation.js";
import { readBroker } from "./read-broker.js";
import type { RunPorts } from "./run-ports.js";

/** Takes on what is at a broker already. Nothing is sent that could make or change anything. */
export async function runAdopt(ports: RunPorts, operation: InstanceOperation<"adopt">): Promise<CreateResult> {
  const { data, input } = operation;
  const { osbId, plan } = input;
  const hints = { serviceId: data.offering.id, planId: plan.id };
  const offering = ports.brokers.offering(data.broker, data.offering.id)?.offering;
  // Where instances cannot be fetched, the broker is asked for the last thing that it did to this one.
  const found = await readBroker<object>(
    ports,
    operation,
    "looked for",
    (client, options) =>
      offering?.instances_retrievable === true
        ? client.fetchInstance(osbId, { ...options, ...hints })
        : client.instanceLastOperation(osbId, { ...options, ...hints }),
    async ({ body }) => {
      const { service_id: service, plan_id: itsPlan } = body as {
        readonly service_id?: unknown;
        readonly plan_id?: unknown;
      };
      if (typeof service === "string" && service !== data.offering.id)
        return "the broker says that it is of another offering";
      if (typeof itsPlan === "string" && itsPlan !== plan.id) return "the broker says that it is of another plan";
      return null;
    },
  );
  if (found !== "there") {
    const message = typeof found === "object" ? found.unusable : "the broker does not know it";
    throw failure(message, { class: "rejected" });
  }
  return { osbId, applied: { plan, parameters: null, maintenance: null }, dashboardUrl: null };
}

import type { PolledChange } from "@osbert/protocol/client";
import type { CallOutcome } from "../records/call-outcome.js";
import { type CallMark, instances } from "../records/instance-record.js";
import { awaitLastOperation, type BrokerOperationEnd, type PollMemory } from "./await-last-operation.js";
import { identityOf } from "./identity-of.js";
import type { InstanceOperation } from "./instance-operation.js";
import type { RunPorts } from "./run-ports.js";

/** Waits for the end of what a broker goes on with, in the name of who asked for it. */
export function awaitRunning(
  ports: RunPorts,
  operation: InstanceOperation,
  running: Pick<Extract<CallOutcome, { readonly kind: "running" }>, "operation" | "at" | "retryAfterMs">,
  of: {
    /** As in `answer to …`. */
    readonly what: string;
    readonly change: PolledChange;
    readonly instance: string;
    readonly binding?: string;
    /** The plan of before. */
    readonly plan: string;
    readonly whenForgotten?: () => Promise<void>;
  },
): Promise<BrokerOperationEnd> {
  const { broker, offering } = operation.data;
  const { what, change, instance, binding, plan, whenForgotten } = of;
  const asked = {
    name: `end of ${what}`,
    broker,
    instance,
    ...(binding !== undefined && { binding }),
    change,
    serviceId: offering.id,
    planId: plan,
    operation: running.operation,
    at: running.at,
    retryAfterMs: running.retryAfterMs,
    ...identityOf(operation.input),
    ...(whenForgotten !== undefined && { whenForgotten }),
  };
  const maximum = ports.brokers.plan(broker, offering.id, plan)?.maximum_polling_duration;
  return awaitLastOperation(ports, operation, asked, maximum, memoryOf(operation));
}

function memoryOf(operation: InstanceOperation): PollMemory {
  const part = `call/${operation.id}` as const;
  const load = async () => (await operation.parts([part])).get(part);
  return {
    load: async () => (await load())?.repeated,
    save: async (repeated) => {
      const { repeated: _, ...mark } = (await load()) ?? { call: "", look: -1, at: 0, lost: 0, firstAt: 0 };
      const value: CallMark = repeated === undefined ? mark : { ...mark, repeated };
      await operation.change({ parts: instances.part(part, value) });
    },
  };
}

import { compileSchema } from "@osbert/server/schemas";
import type { Delivery } from "./flow-record.js";
import { isRecord } from "./observed.js";

/** ISO 8601, as Knative takes it: seconds, minutes and hours. */
const duration = {
  type: "string",
  pattern: "^P(T([0-9]{1,6}H)?([0-9]{1,6}M)?([0-9]{1,6}(\\.[0-9]{1,3})?S)?)$",
  maxLength: 40,
};
const name = { type: "string", minLength: 1, maxLength: 253 };

/**
 * What a user may say of the delivery of events, as a JSON Schema. What cannot be delivered goes to an object of the user's own namespace: an address, or
 * an object elsewhere, would let one tenant send events to another.
 */
export const deliverySchema = {
  type: "object",
  description: "How events are delivered to the namespace",
  additionalProperties: false,
  properties: {
    retry: { type: "integer", minimum: 0, maximum: 1_000, description: "How often a delivery is tried again" },
    backoffPolicy: { enum: ["linear", "exponential"] },
    backoffDelay: { ...duration, description: "Before the first retry, such as PT1S" },
    timeout: { ...duration, description: "Of one delivery, such as PT30S" },
    deadLetterSink: {
      type: "object",
      description: "Where events go that could not be delivered: an object of the same namespace",
      additionalProperties: false,
      required: ["apiVersion", "kind", "name"],
      properties: { apiVersion: name, kind: name, name },
    },
  },
} as const;

const check = compileSchema(deliverySchema, "delivery");

/**
 * What was asked for, as a Subscription takes it. `null`: nothing was. Parameters of an application with a schema of its own were held against that
 * alone: what is no delivery by our schema may be a word of the application's, and is none here.
 */
export function toDelivery(parameters: unknown, namespace: string): Delivery | null {
  const asked = isRecord(parameters) ? parameters.delivery : undefined;
  if (!isRecord(asked) || check(asked) !== null) return null;
  const { deadLetterSink: sink, ...rest } = asked;
  const delivery = rest as Delivery;
  if (!isRecord(sink)) return Object.keys(delivery).length === 0 ? null : delivery;
  const {
    apiVersion,
    kind,
    name: sinkName,
  } = sink as { readonly apiVersion: string; readonly kind: string; readonly name: string };
  return { ...delivery, deadLetterSink: { ref: { apiVersion, kind, name: sinkName, namespace } } };
}

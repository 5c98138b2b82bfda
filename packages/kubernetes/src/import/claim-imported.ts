import type { TypedChange, TypedResource } from "@osbert/journal";
import { type Claim, claim } from "../flows/claims.js";
import { type NamespaceShape, namespaceResource, newNamespace, wirePart } from "../flows/flow-record.js";
import { newWire } from "../flows/next-wire.js";
import type { PlannedFlow } from "./plan-import.js";

/** Lower than that of every operation: whatever was done to an instance here counts more than what was there before. */
export const importedOperation = 0;

/** `known`: its flow was claimed before, or let go. Then nothing changes. */
export type ClaimedImport = "claimed" | "known" | "full";

/**
 * The claim of a flow that was there before, with what carries it: its Subscription under the name that it has, and its Broker, which is another's.
 * The next look at the namespace finds all of it as it is to be, and has nothing to do.
 */
export function claimImported(
  resource: TypedResource<NamespaceShape> | undefined,
  wanted: Omit<Claim, "operation" | "delivery">,
  { subscription, broker }: Pick<PlannedFlow, "subscription" | "broker">,
  now: number,
): { readonly result: ClaimedImport; readonly change?: TypedChange<NamespaceShape> } {
  const { flow, namespace, application } = wanted;
  const { result, change } = claim(resource, { ...wanted, operation: importedOperation, delivery: null }, now);
  if (result === "full") return { result };
  if (change === undefined) return { result: "known" };
  const data = change.data ?? resource?.data ?? newNamespace(namespace);
  const adopts = broker !== null && data.broker.state === "absent";
  const part = wirePart(application);
  // One that is there already has a Subscription of its own.
  const wire =
    subscription === null || resource?.parts.get(part) !== undefined
      ? {}
      : namespaceResource.part(part, {
          ...newWire(application, namespace),
          ...{ name: subscription.name, uid: subscription.uid, holders: [flow], state: "present", deliveryAt: now },
        });
  return {
    result: "claimed",
    change: {
      ...change,
      ...(adopts && {
        data: { ...data, broker: { ...data.broker, state: "present", adopted: true, uid: broker.uid } },
      }),
      parts: { ...change.parts, ...wire },
      entries: [
        ...(change.entries ?? []),
        { kind: "flow-imported", payload: { flow, application, subscription: subscription?.name ?? null } },
      ],
    },
  };
}

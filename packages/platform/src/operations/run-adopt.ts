import { instanceLabels } from "../records/instance-labels.js";
import type { CreateResult } from "../records/instance-record.js";
import { keys } from "../records/keys.js";
import { type OrphanData, orphanRecords } from "../records/orphan-record.js";
import { failure } from "./failure.js";
import { findOwner, osbIdAt } from "./find-owner.js";
import type { InstanceOperation } from "./instance-operation.js";
import { readBroker } from "./read-broker.js";
import type { RunPorts } from "./run-ports.js";

/**
 * Takes on what is at a broker already. Nothing is sent that could make or change anything. In this order: that it wants the id is kept, and then
 * it looks whether anybody else has it, wants it, or deletes it. Two that want the same see each other, and none has it; the ledger, which looks
 * for both before each DELETE, sees this one and waits for its end, or this one sees that it is at work, and fails (E10-62). A row that is held
 * and released later waits, too: nothing here waits for the ledger. Who dismisses a row calls off what the ledger does, and not what was sent
 * for it: whether the broker is at that is asked for.
 */
export async function runAdopt(ports: RunPorts, operation: InstanceOperation<"adopt">): Promise<CreateResult> {
  const { data, input } = operation;
  const { osbId, plan } = input;
  await operation.change((now) => {
    if (now.data.adoptingId === osbId) return {};
    const claimed = { ...now.data, adoptingId: osbId };
    return { data: claimed, labels: instanceLabels(claimed) };
  });
  const left = await operation.step("nobody has it", () => checkFree(ports, operation));
  const hints = { serviceId: data.offering.id, planId: plan.id };
  if (left !== null) {
    const named = left.operation === null ? {} : { operation: left.operation };
    const last = await readBroker<object>(
      ports,
      operation,
      "looked for a delete",
      (client, options) => client.instanceLastOperation(osbId, { ...options, ...hints, ...named }),
      async ({ body }) => ((body as { readonly state?: unknown }).state === "in progress" ? atWork : null),
    );
    if (typeof last === "object") throw failure(last.unusable, { class: "rejected" });
  }
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
      const {
        service_id: service,
        plan_id: itsPlan,
        state,
      } = body as { readonly service_id?: unknown; readonly plan_id?: unknown; readonly state?: unknown };
      // It may be a delete.
      if (state === "in progress") return atWork;
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

const atWork = "the broker is at work at it";

/**
 * Answers what was sent for a row that was dismissed: the broker may have deleted it by now, or be about to. The next attempt finds the claim as it was left, and asks
 * the same again if this was not recorded.
 */
async function checkFree(
  ports: RunPorts,
  { key, data, input }: InstanceOperation<"adopt">,
): Promise<NonNullable<OrphanData["deleting"]> | null> {
  const { osbId } = input;
  const id = osbIdAt(ports.brokers, data.broker, osbId);
  const owner = await findOwner(ports.journal(), id, (other) => other !== key);
  // Not whose: it may be in a space that is none of theirs.
  if (owner !== undefined) throw failure("another instance has it, or is about to", { class: "rejected" });
  let left: OrphanData["deleting"];
  for (const broker of id.brokers) {
    const row = orphanRecords.resource(await ports.journal().read(keys.orphan(broker, osbId, null)));
    if (row !== undefined && row.data.endedAt === null && row.data.state === "open")
      throw failure("it is being deleted: the ledger of orphans has it", { class: "rejected" });
    // Another process may have a DELETE on the wire until it hears that the row was dismissed.
    if (row?.data.state === "dismissed" && row.open.length > 0)
      throw failure("the ledger of orphans is still at it: its row was dismissed just now", { class: "rejected" });
    if (row?.data.state === "dismissed") left ??= row.data.deleting;
  }
  return left ?? null;
}

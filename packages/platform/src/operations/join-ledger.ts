import { brokerLane, keys } from "../records/keys.js";
import { orphanLabels, orphanRecords } from "../records/orphan-record.js";
import { awaitUndone } from "./await-undone.js";
import type { InstanceOperation } from "./instance-operation.js";
import type { RunPorts } from "./run-ports.js";

/**
 * Waits until what the ledger has under these ids is gone at the broker, so that there is one stream of DELETEs for them (E10-22). Answers whether there
 * was something. What was held there waits no longer, because the user has said what is to become of it; but for what a broker answered 409
 * to, which may be somebody else's.
 */
export async function joinLedger(
  ports: RunPorts,
  operation: InstanceOperation<"delete" | "unbind">,
  { instance, binding }: { readonly instance: string; readonly binding: string | null },
  withinMs = Number.MAX_SAFE_INTEGER,
): Promise<boolean> {
  const id = binding ?? instance;
  const key = keys.orphan(operation.data.broker, instance, binding);
  const { result: isThere } = await operation.transact(`ledger ${id}`, key, release);
  if (!isThere) return false;
  operation.describe("what an earlier attempt may have left at the broker is being deleted");
  await awaitUndone(ports, operation, key, {
    name: `undone ${id}`,
    withinMs,
    suffices: ["deleted", "absent"],
  });
  return true;
}

const release = orphanRecords.decide<boolean>((row) => {
  if (row === undefined || row.data.endedAt !== null || row.data.isConflict) return { result: false };
  const data = { ...row.data, state: "open" } as const;
  const held = row.open.filter((one) => one.held).map(({ id }) => id);
  const waiting = row.open.filter((one) => one.state === "waiting").map(({ id }) => id);
  return {
    result: true,
    change: {
      data,
      labels: orphanLabels(data),
      // What was abandoned has nobody who deletes it.
      ...(row.open.length === 0 && { accept: [{ kind: "mitigate" as const, lane: brokerLane(data.broker) }] }),
      ...(held.length > 0 && { release: held }),
      ...(waiting.length > 0 && { hurry: waiting }),
    },
  };
});

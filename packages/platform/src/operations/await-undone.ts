import { type OrphanData, orphanRecords } from "../records/orphan-record.js";
import type { InstanceOperation } from "./instance-operation.js";
import { growingPauseMs } from "./pauses.js";
import type { RunPorts } from "./run-ports.js";

const lookPause = { firstMs: 500, longestMs: 30_000 };

/**
 * Waits until a row of the ledger has ended, or its broker has said so much: of what may come late, the ledger goes on to look for it, and nobody
 * else has to wait for that. Answers false if it has not in that time.
 */
export async function awaitUndone(
  ports: RunPorts,
  operation: InstanceOperation,
  orphan: string,
  {
    name,
    withinMs,
    suffices,
  }: { readonly name: string; readonly withinMs: number; readonly suffices: readonly OrphanData["gone"][] },
): Promise<boolean> {
  const look = async ({ elapsedMs }: { readonly elapsedMs: number }): Promise<boolean | undefined> => {
    const row = orphanRecords.resource(await ports.journal().read(orphan));
    if (row === undefined || row.data.endedAt !== null) return true;
    if (row.data.gone !== undefined && suffices.includes(row.data.gone)) return true;
    return elapsedMs >= withinMs ? false : undefined;
  };
  return operation.poll(name, look, {
    everyMs: (looks) => Math.min(withinMs, growingPauseMs(lookPause, looks - 1, ports.random)),
  });
}

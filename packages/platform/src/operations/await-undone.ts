import { orphanRecords } from "../records/orphan-record.js";
import type { InstanceOperation } from "./instance-operation.js";
import { growingPauseMs } from "./pauses.js";
import type { RunPorts } from "./run-ports.js";

const lookPause = { firstMs: 500, longestMs: 30_000 };

/** Waits until a row of the ledger has ended. Answers false if it has not in that time. */
export async function awaitUndone(
  ports: RunPorts,
  operation: InstanceOperation,
  orphan: string,
  { name, withinMs }: { readonly name: string; readonly withinMs: number },
): Promise<boolean> {
  const look = async ({ elapsedMs }: { readonly elapsedMs: number }): Promise<boolean | undefined> => {
    const row = orphanRecords.resource(await ports.journal().read(orphan));
    if (row === undefined || row.data.endedAt !== null) return true;
    return elapsedMs >= withinMs ? false : undefined;
  };
  return operation.poll(name, look, {
    everyMs: (looks) => Math.min(withinMs, growingPauseMs(lookPause, looks - 1, ports.random)),
  });
}

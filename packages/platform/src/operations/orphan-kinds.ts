import type { OperationKinds } from "@osbert/journal";
import { type OrphanData, orphanLabels, orphanRecords } from "../records/orphan-record.js";
import { type KindPorts, runPorts } from "./instance-kinds.js";
import { runMitigate } from "./run-mitigate.js";

/** Rows of the ledger: what may be left at brokers, and is deleted there. */
export function orphanKinds(given: KindPorts): OperationKinds {
  const ports = runPorts(given);
  return orphanRecords.kinds({
    mitigate: {
      deadlineMs: null,
      run: (operation) => runMitigate(ports, operation),
      settle: ({ data }, operation, outcome) => {
        switch (outcome.kind) {
          case "succeeded": {
            const { result } = outcome;
            const isAdopted = result.status === "adopted";
            const ended: OrphanData = {
              ...data,
              ...(isAdopted
                ? { state: "dismissed", endedBy: "platform", endReason: `it was adopted: ${result.owner}` }
                : { state: "mitigated" }),
              endedAt: result.at,
            };
            return {
              data: ended,
              labels: orphanLabels(ended),
              parts: { poll: null },
              entries: [{ kind: isAdopted ? "dismissed" : "mitigated", operation: operation.id }],
              gone: true,
            };
          }
          // Only by whoever dismissed it, who has written so.
          case "cancelled":
            return {};
          // For ever (E8).
          case "failed":
            return { accept: [{ kind: "mitigate", lane: operation.lane, delayMs: dayMs }] };
        }
      },
    },
  });
}

const dayMs = 24 * 60 * 60 * 1_000;

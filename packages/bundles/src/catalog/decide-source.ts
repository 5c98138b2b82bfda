import type { Attribution, Journal } from "@osbert/journal";
import type { AdminDecision } from "../reconcile/admin-decisions.js";
import type { StoredSource } from "../reconcile/records.js";
import type { SourceChange } from "../reconcile/source-change.js";
import { askForReading } from "./ask-for-reading.js";
import type { SourceCopy } from "./source-copy.js";
import { writeAs, writeSource } from "./write-source.js";

export interface DecideSourcePorts {
  readonly journal: Journal;
  readonly copy: SourceCopy;
  /** Told of what was written. */
  readonly changed: (change: SourceChange) => void;
}

/**
 * What a decision comes to is written, and then the operation that follows the source looks at it. Killed in between, that looks when its
 * next reading is due. `undefined`: there is no such source.
 */
export async function decideSource(
  { journal, copy, changed }: DecideSourcePorts,
  decision: (stored: StoredSource) => AdminDecision,
  by: Attribution,
): Promise<AdminDecision | undefined> {
  let decided: AdminDecision | undefined;
  const change = await writeSource(copy, writeAs(journal, copy.key, by), (stored) => {
    decided = decision(stored);
    return decided.kind === "changed" ? decided.change : null;
  });
  if (change !== undefined) changed(change);
  if (decided?.kind === "changed") await askForReading(journal, copy.key, by);
  return decided;
}

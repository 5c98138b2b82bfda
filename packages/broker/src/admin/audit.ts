import type { Archive } from "@osbert/journal";
import { instanceAddress } from "../records/instance-key.js";
import { type EntryView, entryView } from "./entry-view.js";

/** One line of the audit trail: an entry of a journal, with every value masked that may be secret, as the admin API shows it. */
export interface AuditEntry extends EntryView {
  readonly platform: string;
  /** `null`: it is about the broker itself, as a pause is. */
  readonly instance: string | null;
}

/**
 * Keeps the entries that retention is about to remove. At least once: nothing is removed before this resolves, and a process that is
 * killed in between hands the same entries over again; instance and number tell them. While it rejects, nothing is removed.
 */
export type Audit = (entries: readonly AuditEntry[]) => Promise<void>;

/** The journal's own book-keeping, and its looks whether it can write, are no part of the trail. */
const unaudited: ReadonlySet<string> = new Set(["pruned", "readiness"]);

export function archiveFor(audit: Audit): Archive {
  return async (key, entries) => {
    const { platform = "", instance = null } = instanceAddress(key) ?? {};
    const told = entries
      .filter(({ kind }) => !unaudited.has(kind))
      .map((entry) => ({ platform, instance, ...entryView(entry) }));
    if (told.length > 0) await audit(told);
  };
}

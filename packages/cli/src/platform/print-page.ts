import type { PageChoice } from "../admin/admin-command-options.js";
import { type AskPage, printList } from "../admin/print.js";
import { type ExitStatus, exitStatuses } from "../client/exit-status.js";
import type { PlatformSession } from "./platform-session.js";

/** Prints a list of the platform's. */
export async function printPage<Item extends object>(
  session: PlatformSession,
  ask: AskPage<Item>,
  page: PageChoice,
  headings: readonly string[],
  row: (item: Item) => readonly string[],
  none: string,
): Promise<ExitStatus> {
  await printList(session, ask, page, headings, row, none);
  return exitStatuses.succeeded.status;
}

import { randomUUID } from "node:crypto";
import { headerNames } from "@osbert/protocol";

/** The header's name as servers know it. */
export const requestIdentityHeader = headerNames.requestIdentity.toLowerCase();

/**
 * Stands on every answer, in the log and in the journal, so that both sides' records can be put together. What a platform sends comes back as
 * it is; where it sends none, or what no header may hold, one is made.
 */
export function requestIdentity(sent: string | undefined): string {
  if (sent === undefined) return randomUUID();
  const id = sent.trim();
  return /^[\x20-\x7e]{1,255}$/.test(id) ? id : randomUUID();
}

import { createHash } from "node:crypto";

/**
 * The name of a server lock. Such locks are the server's, not a database's, so the name tells databases and prefixes apart; as a hash,
 * because it may have 64 characters at most.
 */
export function lockName(...of: readonly string[]): string {
  return `osbert:${createHash("sha256").update(JSON.stringify(of)).digest("hex").slice(0, 48)}`;
}

/** A lock's name in SQL: letters, digits and a colon. */
export function quoted(name: string): string {
  return `'${name}'`;
}

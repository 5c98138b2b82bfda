import { createHash } from "node:crypto";

/** What stands on the server for one instance. */
export interface DatabaseNames {
  readonly database: string;
  /** Owns all that is in the database, whichever binding created it. Nobody logs in as it. */
  readonly owner: string;
  /** May read all that the owner creates. Nobody logs in as it either. */
  readonly reader: string;
}

interface InstanceId {
  readonly platform: string;
  readonly id: string;
}

/**
 * Names follow from ids alone, so that a step that runs again finds what it has made, and a deprovision finds it without any state.
 * Ids come from outside, may be long and hold anything; PostgreSQL's names have 63 bytes. Hence hashes.
 */
export function databaseNames({ platform, id }: InstanceId): DatabaseNames {
  const database = `osb_${hash([platform, id])}`;
  return { database, owner: `${database}_owner`, reader: `${database}_reader` };
}

/** The role that a binding logs in as. */
export function bindingRole({ platform, id }: InstanceId, binding: string): string {
  return `osb_${hash([platform, id, binding])}`;
}

function hash(parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32);
}

import { JournalError } from "../../errors.js";

/**
 * What the store throws for an error of the driver: `store-unavailable` if it came from the connection or the state of the server,
 * so that repeating may help and the outcome may be unknown; `too-large` for what does not fit. Anything else is a mistake that
 * repeating would repeat, and stays as it is.
 */
export function asStoreError(error: unknown): unknown {
  if (error instanceof JournalError || error instanceof TypeError || error instanceof RangeError) return error;
  if (tooLong.has(numberOf(error))) return new JournalError("too-large", undefined, { cause: error });
  const reason = refusedBy[numberOf(error)] ?? brokenBy[codeOf(error)];
  if (reason !== undefined) return unavailable(reason, error);
  // What the server says has a number; the rest is the driver's word on a connection that is of no more use.
  return numberOf(error) > 0 ? error : unavailable("the connection to the MySQL server broke", error);
}

export function unavailable(reason: string, cause?: unknown): JournalError {
  return new JournalError("store-unavailable", `${reason}; what was asked may be repeated`, { cause });
}

/** The server has undone a transaction because of others that ran at the same time: it can be run again as it is. */
export function lostToOthers(error: unknown): boolean {
  return error instanceof TryAgain || undoneBy.has(numberOf(error));
}

/** A key, or a part of one, is there already. */
export function isDuplicate(error: unknown): boolean {
  return numberOf(error) === 1062;
}

/** An index of that name is there already. */
export function isDuplicateIndex(error: unknown): boolean {
  return numberOf(error) === 1061;
}

export function isNoSuchTable(error: unknown): boolean {
  return numberOf(error) === 1146;
}

/** The session that an error came from is of no more use: it is gone, or leads to a server that is not the right one any more. */
export function endsSession(error: unknown): boolean {
  const number = numberOf(error);
  return !(number > 0) || isFatal(error) || sessionErrors.has(number);
}

/** Thrown inside a transaction to undo it and run it again. */
export class TryAgain extends Error {}

/** Deadlock, lock wait timeout, a record or a table that has changed in the meantime, a statement to be prepared anew. */
const undoneBy: ReadonlySet<number> = new Set([1213, 1205, 1020, 1412, 1615]);

/** A value longer than its column, a statement longer than the server reads. */
const tooLong: ReadonlySet<number> = new Set([1153, 1406]);

/** Shut down, killed, interrupted, or a server that takes no writes, as after a fail-over. */
const sessionErrors: ReadonlySet<number> = new Set([
  1053, 1152, 1153, 1158, 1159, 1160, 1161, 1290, 1792, 1836, 1927, 3169, 4031,
]);

/** Why the server said no, by its error number. */
const refusedBy: Readonly<Record<number, string>> = {
  1020: "others kept changing the same resources",
  1021: "the disk of the MySQL server is full",
  1037: "the MySQL server has run out of memory",
  1040: "the MySQL server has no connection left to give",
  1041: "the MySQL server has run out of memory",
  1044: "the MySQL server refused the account",
  1045: "the MySQL server refused the credentials",
  1047: "the MySQL server is not ready to work, as a node of a cluster that has lost the others",
  1049: "the database does not exist on this MySQL server",
  1053: "the MySQL server is shutting down",
  1114: "the disk or a table space of the MySQL server is full",
  1152: "the MySQL server broke the connection",
  1158: "the MySQL server broke the connection",
  1159: "the MySQL server broke the connection",
  1160: "the MySQL server broke the connection",
  1161: "the MySQL server broke the connection",
  1203: "the MySQL server has no connection left for this account",
  1205: "the MySQL server did not get a lock in time",
  1213: "others kept changing the same resources",
  1226: "the MySQL server has no connection left for this account",
  1290: "the MySQL server takes no writes here, as a replica does",
  1317: "the MySQL server interrupted the statement",
  1461: "the MySQL server has no room for another prepared statement (max_prepared_stmt_count)",
  1698: "the MySQL server refused the credentials",
  1792: "the MySQL server takes no writes here, as a replica does",
  1836: "the MySQL server takes no writes here, as a replica does",
  1927: "the MySQL server ended the session",
  1969: "the MySQL server interrupted the statement",
  3024: "the MySQL server interrupted the statement",
  3169: "the MySQL server ended the session",
  4031: "the MySQL server ended the session because it was idle",
};

/** Why the network or the driver said no, by code. */
const brokenBy: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the MySQL server refused the connection",
  ENOENT: "the MySQL server refused the connection",
  ENOTFOUND: "the host of the MySQL server was not found",
  EAI_AGAIN: "the host of the MySQL server was not found",
  EHOSTUNREACH: "the host of the MySQL server cannot be reached",
  ENETUNREACH: "the host of the MySQL server cannot be reached",
  ETIMEDOUT: "the MySQL server did not answer in time",
  PROTOCOL_SEQUENCE_TIMEOUT: "the MySQL server did not answer in time",
};

function numberOf(error: unknown): number {
  const number = (error as { readonly errno?: unknown } | null | undefined)?.errno;
  return typeof number === "number" ? number : 0;
}

function codeOf(error: unknown): string {
  const code = (error as { readonly code?: unknown } | null | undefined)?.code;
  return typeof code === "string" ? code : "";
}

function isFatal(error: unknown): boolean {
  return (error as { readonly fatal?: unknown } | null | undefined)?.fatal === true;
}

import { JournalError } from "../../errors.js";

/**
 * What the store throws for an error of the driver: `store-unavailable` if it came from the connection or the state of
 * the server, so that repeating may help and the outcome may be unknown; `unreadable` if what is stored is damaged.
 * Anything else is a mistake that repeating would repeat, and stays as it is.
 */
export function asStoreError(error: unknown): unknown {
  if (error instanceof JournalError || error instanceof TypeError || error instanceof RangeError) return error;
  const code = codeOf(error);
  if (!isSqlState(code)) return unavailable(brokenBy[code ?? ""] ?? "the connection to PostgreSQL broke", error);
  if (damaged.has(code)) {
    return new JournalError("unreadable", "PostgreSQL cannot read what it keeps: it is damaged", { cause: error });
  }
  const reason = refusedBy[code] ?? refusedBy[code.slice(0, 4)] ?? refusedBy[code.slice(0, 2)];
  return reason === undefined ? error : unavailable(reason, error);
}

export function unavailable(reason: string, cause?: unknown): JournalError {
  return new JournalError("store-unavailable", `${reason}; what was asked may be repeated`, { cause });
}

/** The server has undone the statement because of others that ran at the same time: it can be run again as it is. */
export function lostToOthers(error: unknown): boolean {
  const code = codeOf(error instanceof JournalError ? error.cause : error);
  return code === "40P01" || code === "40001";
}

/**
 * The session that the error came from is of no more use: it is gone, or leads to a server that is not the right one
 * any more.
 */
export function endsSession(error: unknown): boolean {
  const code = codeOf(error);
  return !isSqlState(code) || code.startsWith("57P") || code.startsWith("08") || code === "25006";
}

/** Data or an index that is corrupt. Of the resource that was asked for: where several were, each is asked for by itself then. */
const damaged: ReadonlySet<string> = new Set(["XX001", "XX002"]);

/** Why the server said no, by SQLSTATE, its first four, or its class. */
const refusedBy: Readonly<Record<string, string>> = {
  "08": "the connection to PostgreSQL broke",
  "25006": "PostgreSQL takes no writes here, as a standby does",
  "28": "PostgreSQL refused the credentials",
  "3D000": "the database does not exist on this PostgreSQL",
  "40": "others kept changing the same resources",
  "53": "PostgreSQL has run out of something it needs",
  "53100": "the disk of PostgreSQL is full",
  "53200": "PostgreSQL has run out of memory",
  "53300": "PostgreSQL has no connection left to give",
  "55P03": "PostgreSQL did not get a lock in time",
  "57014": "PostgreSQL cancelled the statement",
  "57P0": "PostgreSQL is shutting down or starting up",
  "58": "PostgreSQL could not read or write its files",
};

/** Why the network said no, by the code of the system. */
const brokenBy: Readonly<Record<string, string>> = {
  ECONNREFUSED: "PostgreSQL refused the connection",
  ENOENT: "PostgreSQL refused the connection",
  ENOTFOUND: "the host of PostgreSQL was not found",
  EAI_AGAIN: "the host of PostgreSQL was not found",
  EHOSTUNREACH: "the host of PostgreSQL cannot be reached",
  ENETUNREACH: "the host of PostgreSQL cannot be reached",
  ETIMEDOUT: "PostgreSQL did not answer in time",
};

function codeOf(error: unknown): string | undefined {
  const code = (error as { readonly code?: unknown } | null | undefined)?.code;
  return typeof code === "string" ? code : undefined;
}

/** Five digits and capitals. Codes of the system are longer, but for EPIPE. */
function isSqlState(code: string | undefined): code is string {
  return code !== undefined && code !== "EPIPE" && /^[0-9A-Z]{5}$/.test(code);
}

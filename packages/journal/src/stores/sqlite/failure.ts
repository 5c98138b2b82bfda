import { JournalError, type JournalErrorCode } from "../../errors.js";

/** A failure in a form that passes between threads. */
export interface WriterFailure {
  readonly code: JournalErrorCode;
  readonly message: string;
  /** What SQLite said. */
  readonly cause: { readonly code: string; readonly message: string };
}

/** What an error of SQLite means for whoever asked. */
export function failureOf(error: unknown, path: string): WriterFailure {
  if (error instanceof JournalError)
    return { code: error.code, message: error.message, cause: { code: error.code, message: error.message } };
  const cause = { code: codeOf(error), message: error instanceof Error ? error.message : String(error) };
  const [, code, sentence] = meanings.find(([pattern]) => pattern.test(cause.code)) ?? fallback;
  return { code, message: `${path}: ${sentence} (${cause.code}: ${cause.message})`, cause };
}

export function errorOf({ code, message, cause }: WriterFailure): JournalError {
  return new JournalError(code, message, { cause: Object.assign(new Error(cause.message), { code: cause.code }) });
}

/**
 * Whether the whole store is in trouble, and not just the request that met it: no room, a broken disk, somebody
 * else's lock. Then the requests that share a transaction share its fate. Otherwise each may be tried by itself.
 */
export function concernsAll(error: unknown): boolean {
  return /^SQLITE_(FULL|IOERR|BUSY|LOCKED|NOMEM|READONLY|CANTOPEN|PROTOCOL)/.test(codeOf(error));
}

/** The first that fits. */
const meanings: readonly (readonly [RegExp, JournalErrorCode, string])[] = [
  [/^SQLITE_FULL/, "store-unavailable", "there is no room left, so nothing was written; make room and it goes on"],
  [/^SQLITE_IOERR/, "store-unavailable", "the disk failed; whether what was under way is kept is not known"],
  [/^SQLITE_(BUSY|LOCKED)/, "store-unavailable", "another program holds the database locked, so nothing was written"],
  [/^(SQLITE_(CANTOPEN|READONLY)|E[A-Z]+$)/, "store-unavailable", "the file cannot be opened for writing"],
  [
    /^SQLITE_(CONSTRAINT_(DATATYPE|NOTNULL)|MISMATCH)|^(Type|Range)Error$/,
    "invalid-change",
    "a value is not of the kind that is kept there",
  ],
  [/^SQLITE_(CORRUPT|NOTADB|CONSTRAINT)/, "unreadable", "what is stored there is damaged"],
  [/^SQLITE_TOOBIG/, "too-large", "a value is larger than SQLite keeps"],
];

const fallback = [/^/, "store-unavailable", "the database did not do what was asked"] as const;

function codeOf(error: unknown): string {
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined;
  if (typeof code === "string") return code;
  return error instanceof Error ? error.name : "unknown";
}

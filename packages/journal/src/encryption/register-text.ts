import { JournalError } from "../errors.js";

/** What the store says of a key that texts in it are encrypted under. */
export interface RegisteredKey {
  /** A text under the key: whoever can read it has the right one. */
  readonly check: string;
  /** The last rotation found nothing under it: it may be taken out of the ring. */
  readonly unused: boolean;
}

/** By id. */
export type RegisteredKeys = ReadonlyMap<string, RegisteredKey>;

export function registerText(keys: RegisteredKeys): string {
  return JSON.stringify({ version: 1, keys: Object.fromEntries(keys) });
}

export function readRegister(text: string): RegisteredKeys {
  const { version, keys } = parsed(text);
  if (typeof version === "number" && version > 1) {
    throw new JournalError(
      "schema-newer",
      "the register of encryption keys in the store was written by a newer Osbert",
    );
  }
  const read = new Map<string, RegisteredKey>();
  for (const [id, key] of Object.entries(keys ?? {})) {
    if (typeof key?.check !== "string") throw damaged();
    read.set(id, { check: key.check, unused: key.unused === true });
  }
  if (version !== 1 || read.size === 0) throw damaged();
  return read;
}

interface Parsed {
  readonly version?: unknown;
  readonly keys?: Readonly<Record<string, { readonly check?: unknown; readonly unused?: unknown } | null>>;
}

function parsed(text: string): Parsed {
  try {
    return (JSON.parse(text) as Parsed | null) ?? {};
  } catch {
    throw damaged();
  }
}

function damaged(): JournalError {
  return new JournalError(
    "unreadable",
    "the register of encryption keys in the store is damaged; nothing was changed: bring it back from a copy of the store",
  );
}

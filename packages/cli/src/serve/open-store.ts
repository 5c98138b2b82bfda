import { dirname, resolve } from "node:path";
import { JournalError, type Store } from "@osbert/journal";
import { type EncryptedStore, encryptedStore, parseKeyRing } from "@osbert/journal/encryption";
import type { Settings } from "../settings/table.js";
import { UserError } from "../user-error.js";
import { makeFolder } from "./make-folder.js";

/** A store that is not open yet, and what it needs to be let go of afterwards. */
export interface ChosenStore {
  readonly store: Store;
  /** The same, if keys are set. */
  readonly encrypted: EncryptedStore | null;
  /** For people: without a password. */
  readonly address: string;
  /** After the store was closed. */
  readonly release: () => Promise<void>;
}

export type StoreSettings = Pick<Settings, "store" | "database" | "data" | "keys">;

/** The store that the settings name, encrypted if they name keys. Connects to nothing yet. */
export async function chooseStore(
  settings: StoreSettings,
  options: { readonly migrate: boolean },
): Promise<ChosenStore> {
  const plain = await choosePlainStore(settings, options);
  if (settings.keys === undefined) return { ...plain, encrypted: null };
  const encrypted = encryptedStore(plain.store, parseKeyRing(settings.keys.reveal()));
  return { ...plain, store: encrypted, encrypted };
}

async function choosePlainStore(
  settings: StoreSettings,
  options: { readonly migrate: boolean },
): Promise<Omit<ChosenStore, "encrypted">> {
  const url = settings.store.reveal();
  const { schema, connections } = settings.database;
  const address = settings.store.toString();
  if (url === "memory:") {
    const { memoryStore } = await import("@osbert/journal/memory");
    return { store: memoryStore(), address, release: nothing };
  }
  if (url.startsWith("sqlite:")) {
    const path = resolve(settings.data, url.slice("sqlite:".length));
    const { sqliteStore } = await import("@osbert/journal/sqlite");
    await makeFolder(dirname(path)).catch((error: unknown) => {
      throw new UserError(`the folder ${dirname(path)} for the store cannot be made${whyOf(error)}`, { cause: error });
    });
    return { store: sqliteStore(path), address: `sqlite:${path}`, release: nothing };
  }
  if (url.startsWith("mysql:")) {
    const [{ createPool }, { mysqlStore }] = await Promise.all([
      import("mysql2/promise"),
      import("@osbert/journal/mysql"),
    ]);
    // One for presence, some for reads beside those that commit.
    const pool = attempt(address, () => createPool({ uri: url, connectionLimit: connections + 7 }));
    const store = mysqlStore(pool, { prefix: `${schema}_`, writers: connections, migrate: options.migrate });
    return { store, address, release: () => pool.end() };
  }
  const [{ default: pg }, { postgresStore }] = await Promise.all([import("pg"), import("@osbert/journal/postgres")]);
  const pool = new pg.Pool({ connectionString: url, max: connections + 2 });
  return {
    store: postgresStore(pool, { schema, connections, migrate: options.migrate }),
    address,
    release: () => pool.end(),
  };
}

function attempt<T>(address: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw storeTrouble(error, address);
  }
}

/** Why the store could not be opened, in a sentence; other errors as they are. */
export function storeTrouble(error: unknown, address: string, migrate = "osbert migrate"): unknown {
  if (error instanceof JournalError) {
    const reason = error.message
      .replace("; what was asked may be repeated", "")
      .replace(": open it through encryptedStore with these keys", "");
    const advice = {
      "schema-missing": `; run \`${migrate}\``,
      "key-missing": "; set `keys` to a ring that has them",
    };
    return new UserError(
      `the store ${address} cannot be opened: ${reason}${Object.hasOwn(advice, error.code) ? advice[error.code as keyof typeof advice] : ""}`,
      { cause: error },
    );
  }
  const { code } = error as { readonly code?: unknown };
  if (typeof code !== "string") return error;
  return new UserError(`the store ${address} cannot be opened${whyOf(error)}`, { cause: error });
}

function whyOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "EACCES" || code === "EPERM" || code === "EROFS") return ": this user may not write there";
  if (code === "ENOSPC") return ": the disk is full";
  if (code === "ENOTDIR" || code === "EEXIST") return ": a file is in its place";
  return `: ${message}`;
}

async function nothing(): Promise<void> {}

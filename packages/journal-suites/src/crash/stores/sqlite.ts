import { type SqliteStore, sqliteStore } from "@osbert/journal/sqlite";

/** A store module of the crash suite: SQLite in the file at `path`. */
export function openStore({ path }: { readonly path: string }): SqliteStore {
  return sqliteStore(path);
}

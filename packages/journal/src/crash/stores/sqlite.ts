import { type SqliteStore, sqliteStore } from "../../stores/sqlite/index.js";

/** A store module of the crash suite: SQLite in the file at `path`. */
export function openStore({ path }: { readonly path: string }): SqliteStore {
  return sqliteStore(path);
}

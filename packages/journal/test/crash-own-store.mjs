import { sqliteStore } from "@osbert/journal/sqlite";

/** What a third party writes to run the crash suite on its own store. Here it is just SQLite again. */
export function openStore({ path }) {
  return sqliteStore(path, { synchronous: "normal" });
}

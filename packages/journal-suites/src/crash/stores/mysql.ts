import { mysqlStore } from "@osbert/journal/mysql";
import type { Store } from "@osbert/journal/store";
import { createPool } from "mysql2/promise";

/** A store module of the crash suite: a database of the MariaDB or MySQL at `url`. */
export function openStore({ url }: { readonly url: string }): Store {
  return mysqlStore(createPool({ uri: url, connectionLimit: 8 }));
}

import { createPool } from "mysql2/promise";
import type { Store } from "../../store.js";
import { mysqlStore } from "../../stores/mysql/index.js";

/** A store module of the crash suite: a database of the MariaDB or MySQL at `url`. */
export function openStore({ url }: { readonly url: string }): Store {
  return mysqlStore(createPool({ uri: url, connectionLimit: 8 }));
}

import pg from "pg";
import type { Store } from "../../store.js";
import { postgresStore } from "../../stores/postgres/index.js";

/** A store module of the crash suite: a schema of the PostgreSQL at `url`. */
export function openStore({ url, schema }: { readonly url: string; readonly schema: string }): Store {
  return postgresStore(new pg.Pool({ connectionString: url, max: 8 }), { schema });
}

import { postgresStore } from "@osbert/journal/postgres";
import type { Store } from "@osbert/journal/store";
import pg from "pg";

/** A store module of the crash suite: a schema of the PostgreSQL at `url`. */
export function openStore({ url, schema }: { readonly url: string; readonly schema: string }): Store {
  return postgresStore(new pg.Pool({ connectionString: url, max: 8 }), { schema });
}

import type { Change } from "../operations.js";
import type { Place } from "../places.js";
import type { Ceiling } from "./ceiling.js";
import { mariadbCeiling } from "./mariadb.js";
import { postgresCeiling } from "./postgres.js";
import { sqliteCeiling } from "./sqlite.js";

/** `changes`: what is committed for one resource, in order; the first one creates it. `group`: resources of a transaction. */
export function ceilingOf(place: Place, changes: readonly Change[], group: number): Promise<Ceiling> {
  switch (place.store) {
    case "SQLite":
      return sqliteCeiling(place, changes, group);
    case "PostgreSQL":
      return postgresCeiling(place, changes, group);
    case "MariaDB":
      return mariadbCeiling(place, changes, group);
  }
}

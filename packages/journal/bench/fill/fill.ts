import { makeTables, type PostgresPlace, type SqlitePlace } from "../places.js";
import { fillPostgres } from "./postgres.js";
import { settledResource } from "./settled.js";
import { fillSqlite } from "./sqlite.js";

/** Fills in so many settled resources with random keys, as fast as the database takes them. */
export async function fill(place: SqlitePlace | PostgresPlace, count: number): Promise<void> {
  await makeTables(place);
  const settled = await settledResource();
  if (place.store === "SQLite") fillSqlite(place, count, settled);
  else await fillPostgres(place, count, settled);
}

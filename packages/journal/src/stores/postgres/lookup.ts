/**
 * `column = value` for joins, written so that the planner can only go from the values to an index of the column. Of an
 * equality it may also think the other way round, from all rows of the table in the index's order to the values. It
 * does so when it has last counted next to none, and keeps that plan while the table grows (J10). A range has no such
 * other way.
 */
export function lookup(column: string, value: string): string {
  return `${column} >= ${value} and ${column} <= ${value}`;
}

/**
 * `column = value` for joins, written so that the planner can only go from the values to an index of the column. Of an
 * equality it may also think the other way round, from all rows of the table in the index's order to the values. It
 * does so when it has last counted next to none, and keeps that plan while the table grows (J10). A range has no such
 * other way.
 *
 * The value must be of one relation. Of an expression over two, the planner may leave the column for later, and walk along the index
 * of all resources with what it has of the other columns.
 */
export function lookup(column: string, value: string): string {
  return `${column} >= ${value} and ${column} <= ${value}`;
}

/**
 * `lookup` of a part or an entry, by both columns of its index, whose values are of one relation. A range of resources would make
 * the scan walk along all that the resource has, so this is an equality to the index, but not to the planner.
 */
export function lookupIn(resource: string, resourceValue: string, column: string, value: string): string {
  return `${resource} = any (array[${resourceValue}]) and ${lookup(column, value)}`;
}

/**
 * `lookup` of a label, of which there is also an index by name and value, for all resources. As one row they fit only that which
 * begins with the resource. It may walk along the few labels of the resource.
 */
export function lookupRow(columns: readonly string[], values: readonly string[]): string {
  return lookup(`(${columns.join(", ")})`, `(${values.join(", ")})`);
}
